//! Threads that give way to all others.

/// How much later than others such a thread gets a processor, where others want it too: 19 would be last of all.
const NICE: i32 = 10;

/// From now on this thread gets a processor behind those that did not ask for this. It cannot be taken back.
pub fn give_way() {
    // Without it, it is one thread among others.
    let _last = rustix::process::setpriority_process(None, NICE);
}
