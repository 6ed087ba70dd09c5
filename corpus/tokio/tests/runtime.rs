//! Programs on tokio's runtimes: correct ones, and ones with an error that needs a preemption.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn multi_thread() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A task sends after a sleep; the receiver waits for it, and for a timeout that comes later.
async fn sends_and_sleeps() {
    let (sender, mut receiver) = mpsc::channel(1);
    let sending = tokio::spawn(async move {
        for number in 0..2 {
            sleep(Duration::from_millis(10)).await;
            sender.send(number).await.expect("the receiver exists");
        }
    });
    let mut sum = 0;
    loop {
        tokio::select! {
            received = receiver.recv() => match received {
                Some(number) => sum += number,
                None => break,
            },
            () = sleep(Duration::from_secs(3600)) => panic!("an hour has passed"),
        }
    }
    sending.await.expect("it has sent");
    assert_eq!(sum, 1);
}

/// Two tasks add 1 by a load and a store.
async fn adds(atomically: bool) {
    let count = Arc::new(AtomicU32::new(0));
    let add = |count: Arc<AtomicU32>| async move {
        if atomically {
            count.fetch_add(1, SeqCst);
        } else {
            let now = count.load(SeqCst);
            count.store(now + 1, SeqCst);
        }
    };
    let tasks = [tokio::spawn(add(count.clone())), tokio::spawn(add(count.clone()))];
    for task in tasks {
        task.await.expect("it has added");
    }
    assert_eq!(count.load(SeqCst), 2);
}

/// A task waits for a flag that a thread outside of the runtime sets. `notify_waiters` wakes only
/// tasks that wait.
fn waits(registers_first: bool) {
    let (ready, notify) = (Arc::new(AtomicU32::new(0)), Arc::new(Notify::new()));
    let (flag, waker) = (ready.clone(), notify.clone());
    let outside = std::thread::spawn(move || {
        flag.store(1, SeqCst);
        waker.notify_waiters();
    });
    current_thread().block_on(async move {
        let notified = notify.notified();
        tokio::pin!(notified);
        if registers_first {
            notified.as_mut().enable();
            if ready.load(SeqCst) == 0 {
                notified.await;
            }
        } else if ready.load(SeqCst) == 0 {
            notify.notified().await;
        }
    });
    outside.join().expect("it has set the flag");
}

/// A connection on this machine: what is sent comes back.
async fn echoes() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut bytes = [0; 4];
        stream.read_exact(&mut bytes).await.expect("four bytes");
        stream.write_all(&bytes).await.expect("they are sent");
    });
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(b"echo").await.expect("they are sent");
    let mut bytes = [0; 4];
    stream.read_exact(&mut bytes).await.expect("four bytes");
    assert_eq!(&bytes, b"echo");
    serving.await.expect("it has served");
}

#[test]
fn current_thread_sends_and_sleeps() {
    current_thread().block_on(sends_and_sleeps());
}

#[test]
fn current_thread_adds() {
    // Tasks of one thread are not interrupted between two points at which they wait.
    current_thread().block_on(adds(false));
}

#[test]
fn current_thread_echoes() {
    current_thread().block_on(echoes());
}

/// A thread outside of the runtime wakes a task in it.
#[test]
fn current_thread_is_woken_from_outside() {
    let (sender, receiver) = oneshot::channel();
    let outside = std::thread::spawn(move || sender.send(7).expect("the receiver exists"));
    assert_eq!(current_thread().block_on(receiver), Ok(7));
    outside.join().expect("it has sent");
}

#[test]
fn current_thread_registers_and_waits() {
    waits(true);
}

#[test]
fn current_thread_waits() {
    waits(false);
}

/// A thread sends, and the task gives up if nothing was sent yet.
#[test]
fn current_thread_gives_up() {
    let (sender, mut receiver) = oneshot::channel();
    let outside = std::thread::spawn(move || _ = sender.send(7));
    let received = current_thread().block_on(async move { receiver.try_recv() });
    outside.join().expect("it has ended");
    assert_eq!(received, Ok(7));
}

#[test]
fn multi_thread_sends_and_sleeps() {
    multi_thread().block_on(sends_and_sleeps());
}

#[test]
fn multi_thread_adds_atomically() {
    multi_thread().block_on(adds(true));
}

#[test]
fn multi_thread_adds() {
    multi_thread().block_on(adds(false));
}

#[test]
fn multi_thread_echoes() {
    multi_thread().block_on(echoes());
}

/// A blocking task that sleeps for an hour is abandoned at shutdown.
#[test]
fn multi_thread_shuts_down() {
    let runtime = multi_thread();
    runtime.spawn_blocking(|| std::thread::sleep(Duration::from_secs(3600)));
    let waited = runtime.block_on(async {
        timeout(Duration::from_millis(50), sleep(Duration::from_millis(5))).await
    });
    assert!(waited.is_ok());
    runtime.shutdown_timeout(Duration::from_millis(10));
}
