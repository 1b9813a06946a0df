//! `footbridge run`.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use anyhow::Context as _;

use super::{RunArgs, load_config};
use crate::{
    run::{Run, run},
    sandbox::Asked,
    sys,
};

pub(super) fn main(args: RunArgs) -> anyhow::Result<i32> {
    // Standard error is CMD's too: only what the operator must know, unless `FOOTBRIDGE_LOG` asks for more.
    crate::log::start("warn,rmcp=off");
    let given = args.image.is_some() || !args.engine_args.is_empty();
    if given && args.sandbox.engine().is_none() {
        return Err(NeedsContainer.into());
    }
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let (config, folders) = load_config(&args.files)?;
    if config.servers.is_empty() {
        tracing::warn!("no MCP server is configured: name a servers file with --config");
    }
    let policy = config.policies.get(&args.policy)?;
    let labels = args.labels.into_iter().collect();
    let env = args.env.into_iter().map(asked).collect();
    let run_this = Run {
        config,
        policy,
        sandbox: args.sandbox,
        image: args.image,
        engine_args: args.engine_args,
        env,
        labels,
        limits: args.limits.into_iter().collect(),
        command: args.command,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let status = runtime.block_on(run(run_this, &folders));
    runtime.shutdown_background();
    status
}

/// Flags that mean nothing here.
#[derive(Debug, thiserror::Error)]
#[error("--image and --engine-arg are for containers: add --sandbox podman or --sandbox docker")]
pub(super) struct NeedsContainer;

fn asked(text: OsString) -> Asked {
    let bytes = text.into_vec();
    let (name, value) = match bytes.iter().position(|b| *b == b'=') {
        Some(at) => (&bytes[..at], Some(OsString::from_vec(bytes[at + 1..].to_vec()))),
        None => (&bytes[..], None),
    };
    Asked { name: String::from_utf8_lossy(name).into_owned(), value }
}
