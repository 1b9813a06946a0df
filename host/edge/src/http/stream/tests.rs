//! The limits on slowness, on a paused clock.

use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

impl Abort for tokio::io::DuplexStream {
    fn can_abort(&self) -> bool {
        false
    }

    fn abort(&self) {}
}

fn pair() -> (Timed<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
    let (ours, theirs) = duplex(64);
    (Timed::new(ours, &EdgeLimits::default()), theirs)
}

/// A connection whose request is handled.
async fn handled() -> (Timed<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
    let (mut stream, mut theirs) = pair();
    theirs.write_all(b"h").await.unwrap();
    stream.read_u8().await.unwrap();
    stream.phase().busy();
    (stream, theirs)
}

async fn ends_after(stream: &mut Timed<tokio::io::DuplexStream>) -> u64 {
    let start = Instant::now();
    let mut buffer = [0; 8];
    let error = loop {
        match stream.read(&mut buffer).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    start.elapsed().as_secs()
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_ends_after_a_minute() {
    let (mut stream, _theirs) = pair();
    assert_eq!(ends_after(&mut stream).await, 60);
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_ends_after_five_seconds() {
    let (mut stream, mut theirs) = pair();
    let trickle = tokio::spawn(async move {
        while theirs.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    assert_eq!(ends_after(&mut stream).await, 5);
    drop(stream);
    trickle.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_busy_connection_may_wait_and_is_idle_again_after_its_answer() {
    let (mut stream, mut theirs) = pair();
    theirs.write_all(b"head").await.unwrap();
    stream.read_u8().await.unwrap();
    stream.phase().busy();
    let waited = tokio::time::timeout(Duration::from_secs(600), stream.read(&mut [0; 8])).await;
    assert!(waited.is_ok(), "the rest of what was sent");
    assert!(tokio::time::timeout(Duration::from_secs(600), stream.read(&mut [0; 8])).await.is_err());
    stream.phase().answered();
    stream.flush().await.unwrap();
    assert_eq!(ends_after(&mut stream).await, 60);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_nobody_reads_ends_the_connection() {
    let (mut stream, _theirs) = pair();
    let start = Instant::now();
    let error = stream.write_all(&[0; 1000]).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 30));
}

#[tokio::test(start_paused = true)]
async fn each_event_of_a_stream_has_a_time_of_its_own() {
    let (mut stream, mut theirs) = pair();
    let reader = tokio::spawn(async move {
        while theirs.read_u8().await.is_ok() {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let start = Instant::now();
    let phase = stream.phase();
    for _ in 0..10 {
        phase.answer_begins();
        stream.write_all(&[0; 100]).await.unwrap();
    }
    assert!(start.elapsed().as_secs() > 900, "{:?}", start.elapsed());
    phase.answer_begins();
    assert_eq!(stream.write_all(&[0; 1000]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    drop(stream);
    reader.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_byte_by_byte_ends_the_connection() {
    let (mut stream, mut theirs) = pair();
    let reader = tokio::spawn(async move {
        while theirs.read_u8().await.is_ok() {
            tokio::time::sleep(Duration::from_secs(5)).await;
        }
    });
    let start = Instant::now();
    let error = stream.write_all(&[0; 1000]).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed().as_secs()), (io::ErrorKind::TimedOut, 120));
    drop(stream);
    reader.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_waited_for_its_request_is_idle_after_its_answer_too() {
    let (mut stream, mut theirs) = pair();
    theirs.write_all(b"head").await.unwrap();
    stream.read_u8().await.unwrap();
    stream.phase().busy();
    stream.phase().answered();
    let (start, mut flushed) = (Instant::now(), false);
    let woken = std::future::poll_fn(|cx| {
        if flushed {
            return Poll::Ready(());
        }
        flushed = Pin::new(&mut stream).poll_flush(cx).is_ready();
        Poll::Pending
    });
    tokio::time::timeout(Duration::from_secs(600), woken).await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 60, "whoever reads is told when its time is over");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_is_noticed_behind_what_it_sent_besides() {
    for besides in ["", "G", "\r\n"] {
        let (mut stream, mut theirs) = handled().await;
        theirs.write_all(besides.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        drop(theirs);
        assert_eq!(stream.flush().await.unwrap_err().kind(), io::ErrorKind::UnexpectedEof, "{besides:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_read_ahead_is_the_beginning_of_the_next_request() {
    let (mut stream, mut theirs) = handled().await;
    theirs.write_all(b"next").await.unwrap();
    stream.flush().await.unwrap();
    theirs.write_all(b" one").await.unwrap();
    stream.phase().answered();
    stream.flush().await.unwrap();
    let mut read = [0; 8];
    stream.read_exact(&mut read[..2]).await.unwrap();
    stream.read_exact(&mut read[2..]).await.unwrap();
    assert_eq!(&read, b"next one");
    assert_eq!(ends_after(&mut stream).await, 5, "it has the time of a head");
}
