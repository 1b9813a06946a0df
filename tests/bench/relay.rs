//! The relay's speed against other programs that carry a TCP port to a Unix socket: bytes each way and what they cost,
//! connections a second, round trips; and the memory of a connection that is idle.
//!
//! All run at once and are measured in turn, so that whatever else the machine does meets all. A figure is the median
//! of the rounds, with the best round after it, which was disturbed least; a ratio is the median of the rounds' ratios.
//! `scripts/bench relay` builds and runs this; it takes the relay's path.

mod peers;

use std::{
    env,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use footbridge_tests::figures::say;
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_setaffinity},
    sys::resource::{Resource, getrlimit, setrlimit},
    unistd::Pid,
};
use peers::Carrier;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const ROUNDS: usize = 11;
const BYTES: usize = 256 << 20;
const BLOCK: usize = 256 << 10;
const CLIENTS: usize = 4;
const CONNECTIONS: usize = 400;
const TRIPS: usize = 4000;
const MESSAGE: [u8; 256] = [7; 256];
const IDLE: u64 = 10_000;

/// What one round of one program came to, more being better.
struct Figures {
    up: f64,
    down: f64,
    up_per_second: f64,
    down_per_second: f64,
    connections: f64,
    trips: f64,
}

/// What is printed of [`Figures`]: its name, its unit, and how.
type Column = (&'static str, fn(&Figures) -> f64, fn(f64) -> String);

const COLUMNS: [Column; 6] = [
    ("client to harness", |f| f.up, |v| format!("{:.0} MB/s", v / 1e6)),
    ("harness to client", |f| f.down, |v| format!("{:.0} MB/s", v / 1e6)),
    ("processor time a GiB, client to harness", |f| f.up_per_second, |v| format!("{:.3} s", f64::from(1 << 30) / v)),
    ("processor time a GiB, harness to client", |f| f.down_per_second, |v| format!("{:.3} s", f64::from(1 << 30) / v)),
    ("connections a second", |f| f.connections, |v| format!("{v:.0}")),
    ("round trip of 256 bytes", |f| f.trips, |v| format!("{:.1} us", 1e6 / v)),
];

fn main() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let [program] = args.as_slice() else { return Err("usage: relay PATH, that of footbridge-relay".into()) };
    let allowed = raise_open_files()?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("h.sock");
    let harness = UnixListener::bind(&path)?;
    idle(&Carrier::relay(Path::new(program), &path)?, &harness, IDLE.min(allowed.saturating_sub(200) / 2))?;
    let mut carriers = vec![Carrier::relay(Path::new(program), &path)?];
    let others = [
        ("socat", Carrier::socat(&path)?, "not in the PATH"),
        ("systemd-socket-proxyd", Carrier::proxyd(&path)?, "not in its places"),
    ];
    for (name, carrier, why) in others {
        match carrier {
            Some(carrier) => carriers.push(carrier),
            None => say(&format!("SKIPPED: the relay against {name}: {why}")),
        }
    }
    drain_backlog(&harness)?;
    let all = sched_getaffinity(Pid::from_raw(0))?;
    let mut one = CpuSet::new();
    one.set((0..CpuSet::count()).find(|cpu| all.is_set(*cpu).unwrap_or(false)).ok_or("no processor")?)?;
    // Where the system may place them, a round trip measures which processors it chose.
    for (title, on) in [("both ends and the program on one processor", one), ("wherever the system puts them", all)] {
        say(&format!("--- {title}"));
        sched_setaffinity(Pid::from_raw(0), &on)?;
        carriers.iter().try_for_each(|carrier| carrier.place(&on))?;
        compare(&carriers, &harness)?;
    }
    Ok(())
}

fn compare(carriers: &[Carrier], harness: &UnixListener) -> Result<(), Failure> {
    let mut rounds: Vec<Vec<Figures>> = carriers.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (carrier, figures) in carriers.iter().zip(&mut rounds) {
            figures.push(measure(carrier, harness)?);
        }
    }
    for column in COLUMNS {
        print(column, carriers, &rounds);
    }
    Ok(())
}

/// Both ends of a connection are here. Gives the limit.
fn raise_open_files() -> Result<u64, Failure> {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let wanted = hard.max(2 * IDLE + 1000);
    if setrlimit(Resource::RLIMIT_NOFILE, wanted, wanted).is_err() {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(getrlimit(Resource::RLIMIT_NOFILE)?.0)
}

/// Looking whether one listens left connections behind.
fn drain_backlog(harness: &UnixListener) -> Result<(), Failure> {
    harness.set_nonblocking(true)?;
    let until = Instant::now() + Duration::from_millis(300);
    while Instant::now() < until {
        match harness.accept() {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(10)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(harness.set_nonblocking(false)?)
}

fn measure(carrier: &Carrier, harness: &UnixListener) -> Result<Figures, Failure> {
    let (up, up_per_second) = throughput(carrier, harness, |client, peer| (client.into(), peer.into()))?;
    let (down, down_per_second) = throughput(carrier, harness, |client, peer| (peer.into(), client.into()))?;
    let connections = connections(carrier, harness)?;
    let trips = trips(carrier, harness)?;
    Ok(Figures { up, down, up_per_second, down_per_second, connections, trips })
}

/// Either end of a connection, as a file.
struct End(std::fs::File);

impl From<TcpStream> for End {
    fn from(stream: TcpStream) -> Self {
        Self(std::os::fd::OwnedFd::from(stream).into())
    }
}

impl From<UnixStream> for End {
    fn from(stream: UnixStream) -> Self {
        Self(std::os::fd::OwnedFd::from(stream).into())
    }
}

fn pair(carrier: &Carrier, harness: &UnixListener) -> Result<(TcpStream, UnixStream), Failure> {
    let client = carrier.connect()?;
    Ok((client, harness.accept()?.0))
}

/// Bytes a second, and bytes a second of processor time.
fn throughput(
    carrier: &Carrier,
    harness: &UnixListener,
    from_to: impl Fn(TcpStream, UnixStream) -> (End, End),
) -> Result<(f64, f64), Failure> {
    let (client, peer) = pair(carrier, harness)?;
    let (End(mut from), End(mut to)) = from_to(client, peer);
    let before = carrier.processor()?;
    let start = Instant::now();
    let sending = thread::spawn(move || -> std::io::Result<std::fs::File> {
        let block = vec![7; BLOCK];
        for _ in 0..BYTES / BLOCK {
            from.write_all(&block)?;
        }
        Ok(from)
    });
    let mut sink = vec![0; BLOCK];
    let mut left = BYTES;
    while left > 0 {
        match to.read(&mut sink)? {
            0 => return Err(format!("{}: {left} bytes are missing", carrier.name).into()),
            read => left -= read,
        }
    }
    let took = start.elapsed();
    let spent = carrier.processor_since(&before)?;
    sending.join().map_err(|_| "the sender failed")??;
    Ok((BYTES as f64 / took.as_secs_f64(), BYTES as f64 / spent.as_secs_f64()))
}

/// Connections a second that carry a byte each way, from a few clients at a time.
fn connections(carrier: &Carrier, harness: &UnixListener) -> Result<f64, Failure> {
    let start = Instant::now();
    thread::scope(|scope| {
        let answering = scope.spawn(|| -> Result<(), Failure> {
            for _ in 0..CLIENTS * CONNECTIONS {
                let mut peer = harness.accept()?.0;
                peer.read_exact(&mut [0; 1])?;
                peer.write_all(b"!")?;
            }
            Ok(())
        });
        let clients = [(); CLIENTS].map(|()| {
            scope.spawn(|| -> Result<(), Failure> {
                for _ in 0..CONNECTIONS {
                    let mut client = carrier.connect()?;
                    client.write_all(b"?")?;
                    client.read_exact(&mut [0; 1])?;
                }
                Ok(())
            })
        });
        for ended in clients.into_iter().chain([answering]) {
            ended.join().map_err(|_| "a client failed")??;
        }
        Ok((CLIENTS * CONNECTIONS) as f64 / start.elapsed().as_secs_f64())
    })
}

/// Round trips a second on one connection.
fn trips(carrier: &Carrier, harness: &UnixListener) -> Result<f64, Failure> {
    let (mut client, mut peer) = pair(carrier, harness)?;
    let echoing = thread::spawn(move || -> std::io::Result<()> {
        let mut message = MESSAGE;
        for _ in 0..TRIPS {
            peer.read_exact(&mut message)?;
            peer.write_all(&message)?;
        }
        Ok(())
    });
    let mut message = MESSAGE;
    let start = Instant::now();
    for _ in 0..TRIPS {
        client.write_all(&message)?;
        client.read_exact(&mut message)?;
    }
    let took = start.elapsed();
    echoing.join().map_err(|_| "the echo failed")??;
    Ok(TRIPS as f64 / took.as_secs_f64())
}

/// What the relay grows by, for each connection that carried a byte each way and is held.
fn idle(relay: &Carrier, harness: &UnixListener, number: u64) -> Result<(), Failure> {
    let once = || -> Result<(TcpStream, UnixStream), Failure> {
        let (mut client, mut peer) = pair(relay, harness)?;
        client.write_all(b"?")?;
        peer.read_exact(&mut [0; 1])?;
        peer.write_all(b"!")?;
        client.read_exact(&mut [0; 1])?;
        Ok((client, peer))
    };
    drop(once()?);
    let before = relay.resident()?;
    let held: Vec<_> = (0..number).map(|_| once()).collect::<Result<_, _>>()?;
    let grown = relay.resident()?.saturating_sub(before);
    say(&format!("an idle connection: {} bytes of the relay's memory, {number} held", grown / number));
    drop(held);
    Ok(())
}

fn print((what, figure, unit): Column, carriers: &[Carrier], rounds: &[Vec<Figures>]) {
    say(&format!("{what}:"));
    for (n, carrier) in carriers.iter().enumerate() {
        let own = median(rounds[n].iter().map(figure));
        let best = rounds[n].iter().map(figure).fold(0.0, f64::max);
        let ratio = median(rounds[0].iter().zip(&rounds[n]).map(|(relay, other)| figure(relay) / figure(other)));
        let against = if n == 0 { String::new() } else { format!(", the relay is {ratio:.2} times as good") };
        say(&format!("  {:22} {} (best {}){against}", carrier.name, unit(own), unit(best)));
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
