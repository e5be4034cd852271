// Clients of one resource: acquire with rslock's own waiting, hold, release; once or many times.
use super::{LockError, LockManager, Report, GRACE, TTL};
use serde_json::json;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::{spawn_blocking, JoinSet};
use tokio::time::timeout;

const RESOURCE: &str = "bench-contended";
const CLOCK_MONOTONIC: i32 = 1;

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

extern "C" {
    fn clock_gettime(clock: i32, time: *mut Timespec) -> i32;
}

/// CLOCK_MONOTONIC, which Rust's own times keep to themselves.
fn now_us() -> u64 {
    let mut now = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    let failed = unsafe { clock_gettime(CLOCK_MONOTONIC, &mut now) };
    assert_eq!(failed, 0, "clock_gettime");
    now.seconds as u64 * 1_000_000 + now.nanoseconds as u64 / 1000
}

/// Tokio's own timers count milliseconds.
async fn sleep_until(us: u64) {
    spawn_blocking(move || {
        std::thread::sleep(Duration::from_micros(us.saturating_sub(now_us())));
    })
    .await
    .expect("sleeping does not panic");
}

/// The words of the command; `free_us` is 0 where there is no leader.
pub struct Contest {
    pub again: bool,
    pub clients: u64,
    pub hold_us: u64,
    pub begin_us: u64,
    pub space_us: u64,
    pub end_us: u64,
    pub free_us: u64,
    pub counter: Option<String>,
}

/// Client, began, granted, released.
type Wait = [u64; 4];

#[derive(Default)]
struct Seen {
    waits: Vec<Wait>,
    failed: u64,
}

impl Contest {
    async fn hold(&self, wait: &mut Wait) {
        let granted = now_us();
        if granted >= self.end_us {
            return;
        }
        let value = self.counter.as_ref().map(|path| {
            let text = fs::read_to_string(path).expect("the counter can be read");
            text.trim().parse::<u64>().expect("the counter is a number")
        });
        let leads = wait[0] == self.clients;
        sleep_until(if leads {
            self.free_us
        } else {
            granted + self.hold_us
        })
        .await;
        if let (Some(path), Some(value)) = (&self.counter, value) {
            fs::write(path, (value + 1).to_string()).expect("the counter can be written");
        }
        wait[2] = granted;
        wait[3] = now_us();
    }

    /// LockManager::acquire() is the same loop without an end; to drop it in the middle of a try
    /// would leave keys behind until their ttl.
    async fn compete(&self, manager: &LockManager, number: u64, seen: &Mutex<Seen>) {
        let mut wait = [number, now_us(), 0, 0];
        while now_us() < self.end_us {
            match manager.lock(RESOURCE, TTL).await {
                Ok(lock) => {
                    self.hold(&mut wait).await;
                    manager.unlock(&lock).await;
                    break;
                }
                Err(LockError::Unavailable) => {}
                Err(_) => seen.lock().unwrap().failed += 1,
            }
        }
        seen.lock().unwrap().waits.push(wait);
    }
}

pub async fn run(manager: &LockManager, contest: Contest) -> Result<Report, String> {
    let contest = Arc::new(contest);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut tasks = JoinSet::new();
    for number in 0..contest.clients + u64::from(contest.free_us > 0) {
        let (contest, seen, manager) = (contest.clone(), seen.clone(), manager.clone());
        tasks.spawn(async move {
            if number < contest.clients {
                let begin_us = contest.begin_us + number * contest.space_us;
                tokio::time::sleep(Duration::from_micros(begin_us.saturating_sub(now_us()))).await;
            }
            contest.compete(&manager, number, &seen).await;
            while contest.again && now_us() < contest.end_us {
                contest.compete(&manager, number, &seen).await;
            }
        });
    }
    let left = Duration::from_micros(contest.end_us.saturating_sub(now_us()));
    let all = async {
        while let Some(ended) = tasks.join_next().await {
            ended.expect("a client does not panic");
        }
    };
    timeout(left + GRACE, all)
        .await
        .map_err(|_| "clients had not ended 30 s after the time was over")?;
    Ok(Box::new(move || {
        let seen = seen.lock().unwrap();
        json!({"waits": seen.waits, "failed": seen.failed})
    }))
}
