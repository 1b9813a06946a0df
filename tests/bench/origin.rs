//! An origin with TLS, programs that stand in front of it, and how they are measured in turn.

use std::{
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// How often each figure is taken.
const ROUNDS: usize = 5;
/// How long the large answer is, bytes.
pub(crate) const LARGE: u64 = 1 << 30;

/// A program that ends with this.
pub(crate) struct Program(pub(crate) Child);

impl Drop for Program {
    fn drop(&mut self) {
        // Their ends are nobody's concern any more.
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

pub(crate) fn say(line: &str) {
    // Nobody reads on.
    let _ = writeln!(std::io::stdout(), "{line}");
}

pub(crate) fn free_port() -> Result<u16, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Starts a program and waits until it listens.
pub(crate) fn listening(command: &mut Command, port: u16) -> Result<Program, Failure> {
    let program = Program(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
    let until = Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > until {
            return Err(format!("{command:?} does not listen").into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(program)
}

/// An nginx with these servers.
pub(crate) fn start_nginx(at: &Path, name: &str, port: u16, http: &str) -> Result<Program, Failure> {
    let file = at.join(format!("{name}.conf"));
    let at = at.display();
    let text = format!(
        "daemon off; worker_processes 1; pid {at}/{name}.pid; error_log stderr crit;\nevents {{ worker_connections 4096; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 100000000; client_body_temp_path {at}/{name}.b;\n\
         proxy_temp_path {at}/{name}.p; fastcgi_temp_path {at}/{name}.f; uwsgi_temp_path {at}/{name}.u;\n\
         scgi_temp_path {at}/{name}.s;\n{http}\n}}\n"
    );
    fs::write(&file, text)?;
    listening(Command::new("nginx").args(["-p", "/", "-e", "stderr", "-c"]).arg(file), port)
}

/// An nginx that answers by TLS at an address, with a certificate of its own for a name, in `ca.pem`: `/small` with 256
/// bytes, `/large` with a GiB.
pub(crate) fn tls_origin(at: &Path, name: &str, address: &str) -> Result<(u16, Program), Failure> {
    let (key, certificate) = (at.join("key.pem"), at.join("ca.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"])
        .args(["-subj", "/CN=localhost", "-addext", &format!("subjectAltName=DNS:{name}")])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .stderr(Stdio::null())
        .status()?;
    if !made.success() {
        return Err("openssl made no certificate".into());
    }
    fs::create_dir(at.join("www"))?;
    fs::File::create(at.join("www/large"))?.set_len(LARGE)?;
    let (port, at_shown) = (free_port()?, at.display());
    let server = format!(
        "server {{ listen {address}:{port} ssl; ssl_certificate {}; ssl_certificate_key {};\n\
         location = /small {{ return 200 \"{}\"; }} location / {{ root {at_shown}/www; }} }}",
        certificate.display(),
        key.display(),
        "x".repeat(256)
    );
    Ok((port, start_nginx(at, "origin", port, &server)?))
}

/// Measures each of these, one after the other, as often as there are rounds.
pub(crate) fn in_turn<W>(ways: &[W], measure: impl Fn(&W) -> Result<f64, Failure>) -> Result<Vec<Vec<f64>>, Failure> {
    (0..ROUNDS).map(|_| ways.iter().map(&measure).collect()).collect()
}

pub(crate) fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
