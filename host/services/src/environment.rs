//! The variables that a guest gets for its services.

use crate::spec::{GuestAddress, ServiceSpec};

/// The variables of all services of a guest, sorted by name. Settings of git are variables too, counted over all.
#[must_use]
pub fn environment(services: &[ServiceSpec], guest: GuestAddress<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut settings = Vec::new();
    for service in services {
        let (variables, git) = service.guest_environment(guest);
        all.extend(variables);
        settings.extend(git);
    }
    if !settings.is_empty() {
        all.push(("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string()));
    }
    for (index, (key, value)) in settings.into_iter().enumerate() {
        all.push((format!("GIT_CONFIG_KEY_{index}"), key));
        all.push((format!("GIT_CONFIG_VALUE_{index}"), value));
    }
    all.sort();
    all
}
