//! A daemon that is out of descriptors: who connects waits, and the log says so once.

use std::{os::unix::net::UnixStream, thread, time::Duration};

use footbridge_tests::{Host, Servers};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::LIST;

#[test]
fn it_says_once_that_nothing_can_be_accepted_and_once_that_it_goes_on() {
    let mut daemon = Host::with(&Servers::none()).serves();
    let guests = ["one", "two", "three"].map(|name| daemon.opens(name, &[]));
    let pid = Pid::from_raw(daemon.process().pid());
    let none = Rlimit { current: Some(3), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(pid, Resource::Nofile, none).unwrap();
    let sockets = ["one", "two", "three"].map(|name| daemon.host.own_socket(name));
    let control = daemon.host.runtime().join("serve/control.sock");
    let waiting: Vec<_> = sockets.iter().chain([&control]).map(|path| UnixStream::connect(path).unwrap()).collect();
    for _ in 0..2 {
        daemon.process().stderr.shows("no new connection can be accepted");
    }
    // They fail again and again meanwhile.
    thread::sleep(Duration::from_secs(1));
    prlimit(pid, Resource::Nofile, before).unwrap();
    for _ in 0..2 {
        daemon.process().stderr.shows("accepted again");
    }
    assert!(guests.iter().all(|guest| guest.posts(LIST).status == 200));
    drop(waiting);
    let said = daemon.ends().stderr;
    assert_eq!(said.matches("no new connection").count(), 2, "guests and commands: {said}");
    assert_eq!(said.matches("accepted again").count(), 2, "{said}");
}
