// A contender for the benchmarks: rslock as its README uses it. The protocol is in bench/README.md.
mod contend;
mod cycles;

use redis::Client;
use rslock::{LockError, LockManager};
use serde_json::{json, Value};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const TTL: Duration = Duration::from_secs(10);
const CONNECT_BOUND: Duration = Duration::from_secs(10);
/// What a command may take after its own end: calls that queue for a hung node's connection can
/// take hours.
const GRACE: Duration = Duration::from_secs(30);
/// LockManager::set_retry counts tries, not retries.
const ONE_TRY: u32 = 1;
const CLIENTS_MAX: u64 = 1024;

const NOTES: &str =
    "Tokio's multi-threaded runtime, one multiplexed connection a node shared by all tasks. \
    Acquire: SET NX PX to all nodes at once; waits for every node, not for the quorum; counts \
    drift (1 % + 2 ms) and elapsed time; a failure releases on all nodes and waits for them, \
    but a ttl that was exceeded releases nothing. Release: EVALSHA to all nodes, waits for \
    every node, tells no result. An answer may take 500 ms, a connection 1 s (the client's \
    defaults): a hung node delays every acquire and every release by that, and with a node \
    that hung before connect the workers queue for its connection. Contended: the loop of \
    acquire(), tries of three attempts 0..200 ms apart; whoever waits at the end stops after \
    its try. A command that has not ended 30 s after its time is given up.";

/// JSON is made after `done`, so that the driver does not count it.
type Report = Box<dyn FnOnce() -> Value>;

fn pinned(name: &str) -> &'static str {
    let pins = include_str!("../Cargo.toml").lines();
    let pin = pins
        .filter_map(|line| line.strip_prefix(name)?.split_once("\"="))
        .next();
    pin.and_then(|(_, rest)| rest.split('"').next())
        .unwrap_or("?")
}

async fn connect(manager: &mut Option<LockManager>, addresses: &[&str]) -> Result<Report, String> {
    *manager = None;
    let clients = addresses
        .iter()
        .map(|address| Client::open(format!("redis://{address}/")));
    let clients: Vec<Client> = clients
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let connected = LockManager::from_clients(clients);
    let resource = connected
        .get_unique_lock_id()
        .map_err(|error| error.to_string())?;
    let first_lock = async {
        loop {
            match connected.lock(&resource, TTL).await {
                Ok(lock) => return connected.unlock(&lock).await,
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    };
    timeout(CONNECT_BOUND, first_lock)
        .await
        .map_err(|_| "no lock could be taken and released within 10 s")?;
    *manager = Some(connected);
    Ok(Box::new(|| json!({})))
}

/// Waits for all tasks, for GRACE after their end; those that are late then are stopped.
async fn join<T: 'static>(tasks: &mut JoinSet<T>, duration: Duration) -> Result<Vec<T>, String> {
    let count = tasks.len();
    let mut results = Vec::with_capacity(count);
    let all = async {
        while let Some(result) = tasks.join_next().await {
            results.push(result.expect("a worker does not panic"));
        }
    };
    let in_time = timeout(duration + GRACE, all).await.is_ok();
    if in_time {
        return Ok(results);
    }
    tasks.shutdown().await;
    Err(format!(
        "{} of {count} workers had not ended 30 s after the time was over",
        count - results.len()
    ))
}

fn numbers(words: &[&str]) -> Result<Vec<u64>, String> {
    let number = |word: &&str| word.parse::<u64>();
    words
        .iter()
        .map(|word| number(word).map_err(|_| format!("not a number: {word}")))
        .collect()
}

fn microseconds(times: &[Duration]) -> Vec<f64> {
    times
        .iter()
        .map(|time| (time.as_nanos() as f64 / 100.0).round() / 10.0)
        .collect()
}

/// The last word is FREE_US of a line, or COUNTER of a loop.
fn contest(words: &[&str]) -> Result<contend::Contest, String> {
    let again = words[0] == "loop";
    let given = words.get(1..if again { 6 } else { 7 }).map(numbers);
    let (Some(given), 7) = (given.transpose()?, words.len()) else {
        return Err(format!("{} needs six arguments", words[0]));
    };
    if given[0] > CLIENTS_MAX {
        return Err(format!("at most {CLIENTS_MAX} clients"));
    }
    Ok(contend::Contest {
        again,
        clients: given[0],
        hold_us: given[1],
        begin_us: given[2],
        space_us: given[3],
        end_us: given[4],
        free_us: if again { 0 } else { given[5] },
        counter: (again && words[6] != "-").then(|| words[6].to_string()),
    })
}

async fn answer(manager: &mut Option<LockManager>, line: &str) -> Result<Report, String> {
    let words: Vec<&str> = line.split(' ').collect();
    if words[0] == "connect" && words.len() > 1 {
        return connect(manager, &words[1..]).await;
    }
    if !matches!(words[0], "cycles" | "line" | "loop") {
        return Err("unsupported".into());
    }
    let connected = manager.as_ref().ok_or("not connected")?;
    if words[0] != "cycles" {
        return contend::run(connected, contest(&words)?).await;
    }
    let &[workers @ 1..=4096, ms, samples] = numbers(&words[1..])?.as_slice() else {
        return Err("cycles needs WORKERS (1 to 4096) MS SAMPLES".into());
    };
    let duration = Duration::from_millis(ms);
    cycles::run(connected, workers, duration, samples as usize).await
}

#[tokio::main]
async fn main() {
    let version = format!(
        "{}, redis {}, tokio {}",
        pinned("rslock"),
        pinned("redis"),
        pinned("tokio")
    );
    println!(
        "{}",
        json!({"name": "rslock", "version": version, "language": "Rust", "notes": NOTES})
    );
    let mut manager: Option<LockManager> = None;
    // This thread runs no other task, so that it may block here.
    for line in std::io::stdin().lines() {
        let report = match line {
            Ok(line) => answer(&mut manager, &line).await,
            Err(error) => Err(error.to_string()),
        };
        println!("done");
        println!(
            "{}",
            report.map_or_else(|error| json!({ "error": error }), |report| report())
        );
    }
}
