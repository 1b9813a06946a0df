//! TCP, and addresses that nothing ever listens on.

use footbridge_edge::listener::{BindError, Listen, Listener, Listeners};
use footbridge_proto::endpoint::{Endpoint, TcpEndpoint};

fn bind(endpoint: Endpoint) -> Result<Listener, BindError> {
    Listeners::default().bind(&Listen::at(endpoint))
}

#[tokio::test]
async fn a_port_that_is_taken_or_that_others_reach_is_refused() {
    // Others on the machine may take a port that is free again.
    let is_free_again = |_| {
        let taken = bind(Endpoint::Tcp(TcpEndpoint::loopback(0))).unwrap();
        let endpoint = taken.endpoint().unwrap();
        assert!(matches!(bind(endpoint.clone()), Err(BindError::InUse(named)) if named == endpoint));
        drop(taken);
        bind(endpoint).is_ok()
    };
    assert!((0..5).any(is_free_again), "free again at once");
    for wide in ["tcp:0.0.0.0:0", "tcp:[::]:0", "tcp:192.0.2.1:0"] {
        let error = bind(wide.parse().unwrap()).unwrap_err();
        assert!(matches!(error, BindError::NotLoopback(_)), "{wide}: {error}");
    }
}

#[tokio::test]
async fn what_only_connects_is_refused_with_another_way() {
    for text in ["stdio:", "exec:ssh host"] {
        let error = bind(text.parse().unwrap()).unwrap_err();
        assert!(matches!(error, BindError::NoListening { .. }), "{error}");
        assert!(error.to_string().starts_with(text) && error.to_string().contains("listen on unix:/PATH"), "{error}");
    }
}
