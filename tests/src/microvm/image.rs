//! What a machine boots from: an archive in memory with busybox, the guest's programs, the modules and an init.

use std::{
    fs::{self, File},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::Kernel;
use crate::programs;

/// Loads the modules, and then runs one script after the other, as [`super::line`] sends them.
const INIT: &str = include_str!("init.sh");

/// The modules of a vsock over PCI, in the order that they need each other. Kernels that have one built in have no
/// file for it.
const MODULES: [&str; 8] = [
    "virtio_ring",
    "virtio",
    "virtio_pci_legacy_dev",
    "virtio_pci_modern_dev",
    "virtio_pci",
    "vsock",
    "vmw_vsock_virtio_transport_common",
    "vmw_vsock_virtio_transport",
];

/// An archive that a machine boots from, for any number of machines.
#[derive(Debug)]
pub struct Image {
    /// The kernel that its modules are for.
    pub kernel: Kernel,
    folder: TempDir,
}

impl Image {
    /// With the guest's programs, and vsock's modules loaded.
    #[must_use]
    pub fn of(kernel: &Kernel) -> Self {
        let image = Self { kernel: kernel.clone(), folder: tempfile::tempdir().unwrap() };
        for folder in ["root/bin", "root/modules"] {
            fs::create_dir_all(image.folder.path().join(folder)).unwrap();
        }
        let image = image.with(&kernel.busybox(), "bin/busybox");
        let image = image.with_program(&programs::tool_cli()).with_program(&programs::relay());
        fs::write(image.root().join("init"), INIT).unwrap();
        fs::set_permissions(image.root().join("init"), fs::Permissions::from_mode(0o755)).unwrap();
        image.loading(&MODULES)
    }

    /// With vsock between the programs of the machine itself too.
    #[must_use]
    pub fn with_loopback(self) -> Self {
        self.loading(&["vsock_loopback"])
    }

    /// Without any vsock, until a script loads the modules that `/modules/later` names, in that order.
    #[must_use]
    pub fn without_vsock_at_first(self) -> Self {
        let modules = self.root().join("modules");
        fs::rename(modules.join("order"), modules.join("later")).unwrap();
        fs::write(modules.join("order"), "").unwrap();
        self
    }

    /// With one more file.
    #[must_use]
    pub fn with(self, file: &Path, at: &str) -> Self {
        let to = self.root().join(at.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(file, &to).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self
    }

    /// With a program of this machine, and the libraries that it needs unless it is static.
    #[must_use]
    pub fn with_program(self, program: &Path) -> Self {
        let name = format!("bin/{}", program.file_name().unwrap().to_str().unwrap());
        self.with_program_as(program, &name)
    }

    /// The same at another place.
    #[must_use]
    pub fn with_program_as(self, program: &Path, at: &str) -> Self {
        let libraries = programs::libraries(program).into_iter();
        let image = libraries.fold(self, |image, library| image.with(&library, library.to_str().unwrap()));
        let image = image.with(program, at);
        // A third of the size; where there is no strip, it is only larger.
        let _whether_it_worked = Command::new("strip").arg(image.root().join(at.trim_start_matches('/'))).output();
        image
    }

    /// With these modules loaded at the start too, those of them that this kernel does not have built in.
    fn loading(self, modules: &[&str]) -> Self {
        let mut order = File::options().create(true).append(true).open(self.root().join("modules/order")).unwrap();
        modules.iter().fold(self, |image, name| {
            let file = image.kernel.modules().join(format!("{name}.ko"));
            if !file.exists() {
                return image;
            }
            writeln!(order, "{name}").unwrap();
            image.with(&file, &format!("modules/{name}.ko"))
        })
    }

    /// Packs it.
    #[must_use]
    pub fn packed(self) -> Self {
        let pack = format!("find . | cpio --quiet -o -H newc -R 0:0 > '{}'", self.path().display());
        let status = Command::new("sh").args(["-c", &pack]).current_dir(self.root()).status().unwrap();
        assert!(status.success(), "cpio: {status}");
        self
    }

    /// The archive.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("initrd")
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }
}
