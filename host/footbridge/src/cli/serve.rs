//! `footbridge serve`.

use anyhow::Context as _;

use super::{ServeArgs, load_config};
use crate::{
    config::Writable,
    serve::{Serve, serve},
};
use footbridge_processes::sys;

pub(super) fn main(args: ServeArgs) -> anyhow::Result<i32> {
    crate::log::start("info,rmcp=off");
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let (config, folders) = load_config(&args.files, Writable::default())?;
    if config.servers.is_empty() {
        tracing::warn!("no MCP server is configured: name a servers file with --config");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(serve(Serve { files: args.files.config, config }, &folders));
    runtime.shutdown_background();
    served.map(|()| 0)
}
