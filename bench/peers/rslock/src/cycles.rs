// Workers that acquire and release, each its own resources: tries, not waits.
use super::{join, microseconds, LockError, LockManager, Report, ONE_TRY, TTL};
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const NAMES: usize = 8;

#[derive(Default)]
struct Tally {
    cycles: u64,
    failed: u64,
    first_failure: Option<(Instant, LockError)>,
    acquire: Vec<Duration>,
    release: Vec<Duration>,
}

struct Plan {
    manager: LockManager,
    duration: Duration,
    samples: usize,
    sampled: AtomicUsize,
}

impl Plan {
    fn takes_sample(&self) -> bool {
        self.sampled.load(Ordering::Relaxed) < self.samples
            && self.sampled.fetch_add(1, Ordering::Relaxed) < self.samples
    }
}

async fn work(plan: Arc<Plan>, names: [String; NAMES], start: Instant) -> Tally {
    let mut tally = Tally::default();
    for name in names.iter().cycle() {
        let begun = Instant::now();
        if begun - start >= plan.duration {
            break;
        }
        let lock = match plan.manager.lock(name.as_str(), TTL).await {
            Ok(lock) => lock,
            Err(error) => {
                tally.failed += 1;
                tally.first_failure.get_or_insert((Instant::now(), error));
                continue;
            }
        };
        let acquired = Instant::now();
        let sampled = plan.takes_sample();
        plan.manager.unlock(&lock).await;
        tally.cycles += 1;
        if sampled {
            tally.acquire.push(acquired - begun);
            tally.release.push(acquired.elapsed());
        }
    }
    tally
}

pub async fn run(
    manager: &LockManager,
    workers: u64,
    duration: Duration,
    samples: usize,
) -> Result<Report, String> {
    let mut manager = manager.clone();
    manager.set_retry(ONE_TRY, Duration::ZERO);
    let plan = Arc::new(Plan {
        manager,
        duration,
        samples,
        sampled: AtomicUsize::new(0),
    });
    let names: Vec<[String; NAMES]> = (0..workers)
        .map(|w| std::array::from_fn(|i| format!("bench-{w}-{i}")))
        .collect();
    let mut tasks = JoinSet::new();
    let start = Instant::now();
    for names in names {
        tasks.spawn(work(plan.clone(), names, start));
    }
    let tallies = join(&mut tasks, duration).await?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(Box::new(move || {
        let samples = |times: fn(&Tally) -> &Vec<Duration>| -> Vec<f64> {
            tallies
                .iter()
                .flat_map(|tally| microseconds(times(tally)))
                .collect()
        };
        let first_failure = tallies
            .iter()
            .filter_map(|tally| tally.first_failure.as_ref())
            .min_by_key(|(at, _)| *at);
        let mut report = json!({
            "cycles": tallies.iter().map(|tally| tally.cycles).sum::<u64>(),
            "failed": tallies.iter().map(|tally| tally.failed).sum::<u64>(),
            "seconds": seconds,
            "acquire_us": samples(|tally| &tally.acquire),
            "release_us": samples(|tally| &tally.release),
        });
        if let Some((_, error)) = first_failure {
            report["error"] = json!(error.to_string());
        }
        report
    }))
}
