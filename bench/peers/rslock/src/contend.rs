// Clients of one resource: acquire with rslock's own waiting, hold, release.
use super::{join, microseconds, LockError, LockManager, Report, TTL};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::{spawn_blocking, JoinSet};

const RESOURCE: &str = "bench-contended";
const HANDOVERS_MAX: usize = 20_000;

#[derive(Default)]
struct Watch {
    holders: u32,
    overlaps: u64,
    released: Option<Instant>,
    handovers: Vec<Duration>,
}

impl Watch {
    fn granted(&mut self) {
        let now = Instant::now();
        self.overlaps += u64::from(self.holders > 0);
        self.holders += 1;
        if let Some(released) = self.released.take() {
            if self.handovers.len() < HANDOVERS_MAX {
                self.handovers.push(now - released);
            }
        }
    }

    fn releases(&mut self) {
        self.holders -= 1;
        self.released = Some(Instant::now());
    }
}

/// Answers this client's grants before the end and its failures. LockManager::acquire() is the same
/// loop without an end; to drop it in the middle of a try would leave keys behind until their ttl.
async fn compete(
    manager: LockManager,
    watch: Arc<Mutex<Watch>>,
    end: Instant,
    hold: Duration,
) -> (u64, u64) {
    let (mut grants, mut failed) = (0, 0);
    while Instant::now() < end {
        let lock = match manager.lock(RESOURCE, TTL).await {
            Ok(lock) => lock,
            Err(LockError::Unavailable) => continue,
            Err(_) => {
                failed += 1;
                continue;
            }
        };
        watch.lock().unwrap().granted();
        if Instant::now() < end {
            grants += 1;
            if !hold.is_zero() {
                // Tokio's own timers count milliseconds.
                spawn_blocking(move || std::thread::sleep(hold))
                    .await
                    .expect("sleeping does not panic");
            }
        }
        watch.lock().unwrap().releases();
        manager.unlock(&lock).await;
    }
    (grants, failed)
}

pub async fn run(
    manager: &LockManager,
    clients: u64,
    duration: Duration,
    hold: Duration,
) -> Result<Report, String> {
    let watch = Arc::new(Mutex::new(Watch::default()));
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for client in 0..clients {
        let competing = compete(manager.clone(), watch.clone(), start + duration, hold);
        tasks.spawn(async move { (client, competing.await) });
    }
    let mut tallies = join(&mut tasks, duration).await?;
    let seconds = start.elapsed().as_secs_f64();
    tallies.sort_unstable();
    Ok(Box::new(move || {
        let watch = watch.lock().unwrap();
        json!({
            "grants": tallies.iter().map(|(_, (grants, _))| grants).collect::<Vec<_>>(),
            "seconds": seconds,
            "handover_us": microseconds(&watch.handovers),
            "failed": tallies.iter().map(|(_, (_, failed))| failed).sum::<u64>(),
            "overlaps": watch.overlaps,
        })
    }))
}
