//! The variables that a guest gets for its services.

use crate::spec::{GuestAddress, ServiceSpec};

/// The variables of all services of a guest, sorted by name; of two with one name that of the later service holds.
/// Settings of git are variables too, counted over all.
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
    all.sort_by(|(a, _), (b, _)| a.cmp(b));
    all.reverse();
    all.dedup_by(|(later, _), (first, _)| later == first);
    all.reverse();
    all
}

/// What a guest may miss of the variables of its services.
#[must_use]
pub fn environment_notes(services: &[ServiceSpec]) -> Vec<EnvironmentNote> {
    let sets_none = |service: &&ServiceSpec| service.environment.is_empty() && service.git.is_empty();
    let without = services.iter().filter(sets_none).map(|service| EnvironmentNote::SetsNone(service.name.to_string()));
    without.chain(set_twice(services)).collect()
}

/// Variables that two of these services set to different values, with the services: the later one's value holds.
fn set_twice(services: &[ServiceSpec]) -> Vec<EnvironmentNote> {
    let mut found = Vec::new();
    for (at, later) in services.iter().enumerate() {
        for name in later.environment.keys() {
            // Before they are filled in, two of one preset are alike.
            let other = services[..at].iter().rfind(|one| one.environment.contains_key(name));
            let is_own = |text: &String| text.contains("{url}") || text.contains("{name}") || text.contains("{origin}");
            let differ = |one: &&ServiceSpec| {
                one.environment[name] != later.environment[name] || is_own(&later.environment[name])
            };
            if let Some(one) = other.filter(differ) {
                let services = [one.name.to_string(), later.name.to_string()];
                found.push(EnvironmentNote::SetTwice { variable: name.clone(), services });
            }
        }
    }
    found
}

/// What a guest may miss of the variables of its services.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentNote {
    /// A variable that two services set: the second one's value holds.
    #[error("the services \"{}\" and \"{}\" both set {variable}: it leads to the second", services[0], services[1])]
    SetTwice {
        /// The variable.
        variable: String,
        /// The services.
        services: [String; 2],
    },
    /// A service of which no variable tells.
    #[error(
        "no variable tells the guest of the service \"{0}\": write one into its table, as in environment = {{ \
         API_URL = \"{{url}}\", API_KEY = \"{{token}}\" }}, or have the client ask http://127.0.0.1:$TOOL_CLI_PORT/s/{0} with \
         $TOOL_CLI_TOKEN"
    )]
    SetsNone(String),
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use footbridge_core::service::ServiceRules;

    use super::*;
    use crate::{ErrorShape, ServiceOrigin};

    fn spec(name: &str, environment: &[(&str, &str)]) -> ServiceSpec {
        let all = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        ServiceSpec {
            name: name.parse().unwrap(),
            origin: ServiceOrigin::read("https://a.test", false).unwrap(),
            credential: None,
            secrets: Vec::new(),
            lacks_credential: None,
            authorities: Vec::new(),
            proxy: None,
            allow_private: false,
            rules: Arc::new(ServiceRules::default()),
            shape: ErrorShape::Plain,
            usage: false,
            environment: all.collect(),
            git: BTreeMap::default(),
        }
    }

    #[test]
    fn a_service_that_no_variable_tells_of_is_named() {
        let git = ServiceSpec { git: [("a.b".to_owned(), "c".to_owned())].into(), ..spec("g", &[]) };
        let services = [spec("a", &[]), git, spec("b", &[("URL", "{url}")])];
        let [none] = &environment_notes(&services)[..] else { panic!("{:?}", environment_notes(&services)) };
        assert_eq!(*none, EnvironmentNote::SetsNone("a".to_owned()));
        assert!(none.to_string().contains("API_URL = \"{url}\"") && none.to_string().contains("/s/a "), "{none}");
    }

    #[test]
    fn what_two_services_set_is_named_and_the_later_one_holds() {
        let services =
            [spec("z", &[("URL", "{url}"), ("KEY", "{token}")]), spec("a", &[("URL", "{url}"), ("KEY", "{token}")])];
        let guest = GuestAddress { port: 1, token: "t" };
        let expected = [("KEY", "t"), ("URL", "http://127.0.0.1:1/s/a")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        assert_eq!(environment(&services, guest), expected);
        let [twice] = &environment_notes(&services)[..] else { panic!("{:?}", environment_notes(&services)) };
        assert_eq!(twice.to_string(), "the services \"z\" and \"a\" both set URL: it leads to the second");
    }
}
