//! This machine: Footbridge's own programs and folders, and what keeps sandboxes from working here.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::{
        fs::{MetadataExt as _, OpenOptionsExt as _},
        net::UnixStream,
    },
    path::{Path, PathBuf},
};

use footbridge_cli::findings::Finding;
use footbridge_processes::keeper::Confinement;
use nix::unistd::{AccessFlags, access};

use crate::{config::folders::Folders, run::GuestBinaries};

/// Where Docker's engine listens on a machine of its own.
const DOCKER_SOCKET: &str = "/var/run/docker.sock";
/// What is written to see whether a folder takes files: a block of most disks.
const PROBE: usize = 4096;

/// The programs that go into sandboxes.
pub(super) fn programs() -> Vec<Finding> {
    let own = Finding::ok("footbridge", env!("CARGO_PKG_VERSION"));
    vec![
        own,
        match GuestBinaries::find() {
            Ok(found) => Finding::ok("guest programs", found.tool_cli.with_file_name("").display().to_string()),
            Err(error) => {
                Finding::problem("guest programs", error.to_string()).means("\"footbridge run\" cannot start")
            }
        },
    ]
}

/// The folders of this user.
pub(super) fn folders(folders: &Folders) -> Vec<Finding> {
    let all = [
        ("configuration folder", &folders.config),
        ("state folder", &folders.state),
        ("runtime folder", &folders.runtime),
    ];
    all.map(|(check, path)| folder(check, path)).into()
}

fn folder(check: &str, path: &Path) -> Finding {
    let shown = path.display();
    let meta = match path.metadata() {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return match made(path) {
                Err(error) if check != "configuration folder" => Finding::problem(
                    check,
                    format!("{shown} is not there, and cannot be made: {error}"),
                )
                .means("the record and sockets have no place, so nothing starts")
                .mend("make it as who can, for this user, or name another one (FOOTBRIDGE_STATE, FOOTBRIDGE_RUNTIME)"),
                _ => Finding::skipped(check, format!("{shown} is not there yet")),
            };
        }
        Err(error) => return Finding::problem(check, format!("{shown}: {error}")),
    };
    let (owner, user) = (meta.uid(), nix::unistd::geteuid().as_raw());
    if !meta.is_dir() {
        Finding::problem(check, format!("{shown} is no folder")).mend("move it away")
    } else if owner != user && owner != 0 {
        Finding::problem(check, format!("{shown} belongs to user {owner}")).mend(format!("chown it to user {user}"))
    } else if meta.mode() & 0o002 != 0 {
        Finding::problem(check, format!("{shown} can be written to by others")).mend(format!("chmod go-w '{shown}'"))
    } else if access(path, AccessFlags::W_OK | AccessFlags::X_OK).is_err() && check != "configuration folder" {
        Finding::problem(check, format!("{shown} cannot be written to"))
            .means("the record and sockets have no place, so nothing starts")
            .mend("mend its owner and mode, or look whether its disk is read-only")
    } else if let Some(error) = written(path).err().filter(|_| check != "configuration folder") {
        Finding::problem(check, format!("{shown} takes no file: {error}"))
            .means("the record and sockets have no place, so nothing starts, and what runs refuses calls")
            .mend("look whether its disk is full or read-only, or a quota is used up")
    } else {
        Finding::ok(check, shown.to_string())
    }
}

/// Makes a folder where this one, or the first of those above it, would be made, and removes it.
fn made(missing: &Path) -> io::Result<()> {
    let above = missing.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
    let probe = above.join(format!(".doctor-{}", std::process::id()));
    fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe))
}

/// Writes a small file there, as far as the disk, and removes it.
fn written(folder: &Path) -> io::Result<()> {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    let written = file.write_all(&[b'.'; PROBE]).and_then(|()| file.sync_all());
    written.and(fs::remove_file(&path)).inspect_err(|_| drop(fs::remove_file(&path)))
}

/// What sandboxes need of this machine.
pub(super) fn sandboxes() -> Vec<Finding> {
    let is_root = nix::unistd::geteuid().is_root();
    let mut all = vec![user_namespaces(&|path| fs::read_to_string(path).ok(), is_root)];
    all.extend(Confinement::here().gap().map(|gap| Finding::note("Landlock", gap)));
    if fs::read_to_string("/sys/fs/selinux/enforce").is_ok_and(|text| text.trim() == "1") {
        all.push(
            Finding::note("SELinux", "it is enforcing")
                .means("containers may be kept from the socket that is mounted into them")
                .mend("--engine-arg=--security-opt=label=disable"),
        );
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for engine in ["bwrap", "podman", "docker"] {
        let is_program = |path: &PathBuf| access(path, AccessFlags::X_OK).is_ok() && path.is_file();
        let found = std::env::split_paths(&path).map(|folder| folder.join(engine)).find(is_program);
        all.push(match found {
            Some(path) if engine == "docker" => docker(&path),
            Some(path) => Finding::ok(engine, path.display().to_string()),
            None => Finding::skipped(engine, format!("not on PATH: --sandbox {engine} needs it")),
        });
    }
    all
}

/// Docker's client is of no use alone.
fn docker(path: &Path) -> Finding {
    let (check, path) = ("docker", path.display());
    // Another engine than this machine's is asked for by name, or by a context of its own.
    if ["DOCKER_HOST", "DOCKER_CONTEXT"].iter().any(|name| std::env::var_os(name).is_some()) {
        return Finding::ok(check, path.to_string());
    }
    match UnixStream::connect(DOCKER_SOCKET) {
        Ok(_) => Finding::ok(check, path.to_string()),
        Err(error) => Finding::note(check, format!("{path}, and no engine at {DOCKER_SOCKET}: {error}"))
            .means("--sandbox docker cannot start")
            .mend("start the engine, or set DOCKER_HOST"),
    }
}

/// Whether the sandboxes `net` and `bwrap` can have user namespaces, as far as the kernel's settings say.
fn user_namespaces(read: &dyn Fn(&str) -> Option<String>, is_root: bool) -> Finding {
    let is = |path: &str, value: &str| read(path).is_some_and(|text| text.trim() == value);
    let (check, no) = ("user namespaces", |what: &str, mend: &str| {
        Finding::problem("user namespaces", what).means("the sandboxes net and bwrap cannot start").mend(mend)
    });
    if is("/proc/sys/user/max_user_namespaces", "0") {
        no("user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=15000, or --sandbox podman")
    } else if !is_root && is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        no("kernel.unprivileged_userns_clone is 0", "sysctl -w kernel.unprivileged_userns_clone=1")
    } else if !is_root && is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        Finding::note(check, "AppArmor restricts them (kernel.apparmor_restrict_unprivileged_userns is 1)")
            .means("net and bwrap start only for programs with a profile that allows them")
            .mend("an AppArmor profile for footbridge with \"userns,\", or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
    } else {
        Finding::ok(check, "nothing forbids them")
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use footbridge_cli::findings::Health;

    use super::*;

    #[test]
    fn folders_of_others_and_settings_of_the_kernel_are_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        assert_eq!(folder("state folder", &path.join("none")).status, Health::Skipped);
        assert_eq!(folder("state folder", path).status, Health::Ok);
        fs::set_permissions(path, fs::Permissions::from_mode(0o707)).unwrap();
        assert!(folder("state folder", path).mend.unwrap().starts_with("chmod go-w"));
        fs::write(path.join("file"), "").unwrap();
        assert!(folder("state folder", &path.join("file")).found.ends_with("is no folder"));
        for (setting, value, is_root, status) in [
            ("/proc/sys/user/max_user_namespaces", "0\n", true, Health::Problem),
            ("/proc/sys/user/max_user_namespaces", "5\n", false, Health::Ok),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0\n", false, Health::Problem),
            ("/proc/sys/kernel/unprivileged_userns_clone", "0\n", true, Health::Ok),
            ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n", false, Health::Note),
        ] {
            let read = |path: &str| (path == setting).then(|| value.to_owned());
            assert_eq!(user_namespaces(&read, is_root).status, status, "{setting}");
        }
    }
}
