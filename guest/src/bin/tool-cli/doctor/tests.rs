//! Traps by their signatures: what a sandbox shows of itself stands in a folder of the test.

use std::{fs, os::unix::net::UnixListener, path::Path};

use footbridge_cli::findings::Health;
use nix::errno::Errno;

use super::{
    around::Around,
    way::{
        socket,
        tests::{denied_by, vsock_found},
    },
    *,
};

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[track_caller]
fn is_problem(finding: &Finding, says: &str) {
    let all = format!("{finding:?}");
    assert!(finding.status == Health::Problem && finding.mend.is_some() && all.contains(says), "{says}: {all}");
}

/// A socket that nobody listens at any more.
fn dead(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("dead.sock");
    drop(UnixListener::bind(&path).unwrap());
    path
}

#[test]
fn what_stands_where_a_socket_should_be_is_named() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    let here = || Around::of(root, &[]);
    is_problem(&socket("socket", &root.join("none"), &here()), "is not there");
    is_problem(&socket("socket", root, &here()), "is a directory");
    write(root, "file", "");
    is_problem(&socket("socket", &root.join("file"), &here()), "is no socket");
    let dead = dead(root);
    is_problem(&socket("socket", &dead, &here()), "nobody listens");
    let mount = |at: &str, kind: &str| {
        format!("22 1 0:21 / / rw - ext4 /dev/x rw\n36 22 0:33 /x {at} rw,noatime shared:1 - {kind} y rw\n")
    };
    write(root, "proc/self/mountinfo", &mount(&dead.display().to_string(), "tmpfs"));
    is_problem(&socket("socket", &dead, &here()), "the socket itself is mounted");
    for kind in ["virtiofs", "9p"] {
        write(root, "proc/self/mountinfo", &mount(&root.display().to_string(), kind));
        is_problem(&socket("socket", &dead, &here()), "use vsock");
    }
    write(root, "proc/sentry-meminfo", "");
    is_problem(&socket("socket", &dead, &here()), "--host-uds=open");
    let _listener = UnixListener::bind(root.join("live.sock")).unwrap();
    assert_eq!(socket("socket", &root.join("live.sock"), &here()).status, Health::Ok);
}

#[test]
fn who_keeps_a_process_out_is_named() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    is_problem(&denied_by(root, &[], Some(1000)), "of user 1000");
    write(root, "proc/sys/kernel/overflowuid", "65534\n");
    write(root, "proc/self/uid_map", "0 1000 1\n1 100000 65536\n");
    is_problem(&denied_by(root, &[], Some(65534)), "rootless user map");
    is_problem(&denied_by(root, &[], Some(1000)), "of user 1000");
    write(root, "proc/self/uid_map", "         0          0 4294967295\n");
    is_problem(&denied_by(root, &[], Some(65534)), "of user 65534");
    write(root, "proc/self/attr/current", "unconfined_u:unconfined_r:unconfined_t:s0\0");
    is_problem(&denied_by(root, &[], Some(1000)), "of user 1000");
    write(root, "proc/self/attr/current", "system_u:system_r:container_t:s0:c1,c2\0");
    is_problem(&denied_by(root, &[], None), "label=disable");
    is_problem(&denied_by(root, &[("CODEX_SANDBOX_NETWORK_DISABLED", "1")], None), "network_access");
}

#[test]
fn vsock_has_a_filter_a_kernel_and_a_device() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path();
    is_problem(&vsock_found(root, Some(Errno::EPERM)), "seccomp");
    is_problem(&vsock_found(root, Some(Errno::EAFNOSUPPORT)), "modprobe");
    assert_eq!(vsock_found(root, None).status, Health::Note);
    write(root, "dev/vsock", "");
    assert_eq!(vsock_found(root, None).status, Health::Ok);
}

#[test]
fn the_way_out_by_tunnels_is_looked_at_where_it_leads_through_a_bridge() {
    let read = |name: &'static str| Ok((name == vars::PORT).then(|| "7179".to_owned()));
    let settings = ClientSettings::read(&read).unwrap();
    let of = |value: &str| tunnels(&settings, &Around::of(Path::new("/none"), &[("https_proxy", value)]));
    let token = "fbt_0123456789";
    for (place, status) in [("127.0.0.1:7179", Health::Ok), ("127.0.0.1:7180", Health::Note)] {
        let found = of(&format!("http://session:{token}@{place}"));
        assert!(matches!(found.as_slice(), [one] if one.status == status), "{found:?}");
        assert!(!format!("{found:?}").contains(token), "{found:?}");
    }
    for other in ["http://proxy.example:3128", "http://user:word@proxy.example:3128", ""] {
        assert_eq!(of(other), [], "a proxy of somebody else is nobody's business here");
    }
}

#[test]
fn a_variable_that_leads_to_a_service_is_told_from_others() {
    for (value, leads) in [
        ("http://127.0.0.1:7179/s/anthropic", true),
        ("http://127.0.0.1:7179/s/pip/simple", true),
        ("http://127.0.0.1:7179/s/", false),
        ("http://127.0.0.1:7179/mcp", false),
        ("http://127.0.0.1:x/s/a", false),
        ("https://other.test/s/a", false),
    ] {
        assert_eq!(leads_to_a_service(value), leads, "{value}");
    }
}

#[test]
fn a_token_that_cannot_be_read_and_a_connection_that_says_nothing_have_a_cause_and_what_mends_them() {
    let read = |vars: &[(&str, &str)]| {
        let of = |name: &'static str| Ok(vars.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned()));
        look(ClientSettings::read(&of), &Around::of(Path::new("/none"), &[])).remove(0)
    };
    let of_file = read(&[(vars::TOKEN_FILE, "/nonexist")]);
    is_problem(&of_file, "/nonexist");
    is_problem(&of_file, "was revoked, has expired");
    assert_eq!(of_file.check, "token");
    is_problem(&read(&[(vars::TOKEN, "se cret")]), "is no token");
    is_problem(&read(&[(vars::TIMEOUT_MS, "soon")]), "TOOL_CLI_TIMEOUT_MS");
    let of_port = |port: &str| {
        let settings = ClientSettings::read(&|name| Ok((name == vars::PORT).then(|| port.to_owned()))).unwrap();
        environment(&settings, &Around::of(Path::new("/none"), &[(vars::PORT, port)]))
    };
    for port in ["99999", "x", "-1", "0", "65536", "7179x"] {
        is_problem(&of_port(port), "which is no port from 1 to 65535: 7179 is used");
    }
    assert_eq!(of_port("7180").status, Health::Ok);
    let cut = |has_begun| ClientError::Cut { target: "unix:/s".to_owned(), why: "it closed".to_owned(), has_begun };
    is_problem(&refused(&cut(false)), "--allow-uid");
    assert!(!format!("{:?}", refused(&cut(true))).contains("--allow-uid"));
    let error =
        footbridge_proto::rpc::ErrorObject::new(footbridge_proto::rpc::Reason::DeniedByPolicy, "User 7 may not");
    let (says, error) = (error.message.clone(), Some(Box::new(error)));
    is_problem(&refused(&ClientError::Status { status: 403, says, is_foreign: false, error }), "User 7 may not");
}
