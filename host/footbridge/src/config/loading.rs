//! Variables that have programs load something, or say where they look for code, settings and packages; and those that say
//! whom they send to, or whom they trust.
//!
//! Other variables are data: what a program does with those nobody knows.

/// Names of such variables.
const LOADING: [&str; 70] = [
    "AWS_CONFIG_FILE",
    "AZURE_CONFIG_DIR",
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "BUN_INSTALL",
    "CARGO_HOME",
    "CLASSPATH",
    "CLOUDSDK_CONFIG",
    "COMPOSER_HOME",
    "CONTAINERS_CONF",
    "CORECLR_PROFILER_PATH",
    "COREPACK_HOME",
    "CURL_HOME",
    "DENO_DIR",
    "DOCKER_CONFIG",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GIT_ASKPASS",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "GNUPGHOME",
    "GOBIN",
    "GOPATH",
    "GRADLE_USER_HOME",
    "HOME",
    "JAVA_HOME",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JULIA_LOAD_PATH",
    "KUBECONFIG",
    "LOCPATH",
    "LUA_CPATH",
    "LUA_PATH",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NVM_DIR",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PASSWORD_STORE_DIR",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PIPX_HOME",
    "PNPM_HOME",
    "PYENV_ROOT",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTUP_HOME",
    "R_LIBS",
    "R_PROFILE_USER",
    "SSH_ASKPASS",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TMPDIR",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "WGETRC",
    "ZDOTDIR",
];
/// Beginnings of names of further ones.
const LOADING_PREFIXES: [&str; 7] = ["GIT_CONFIG", "LD_", "NPM_CONFIG_", "PIP_", "PYTHON", "UV_", "XDG_"];

/// Whether a variable of this name has a program load something, or says where it looks for that.
pub(super) fn is_loading(name: &str) -> bool {
    let name = name.to_uppercase();
    LOADING.contains(&name.as_str()) || LOADING_PREFIXES.iter().any(|start| name.starts_with(start))
}

/// Words of names that say where a program sends what it has: to whom, by whom, and what proves that.
const LEADING_WORDS: [&str; 38] = [
    "ADDR",
    "ADDRESS",
    "BASE",
    "CA",
    "CERT",
    "CERTIFICATE",
    "CERTS",
    "CONNECTION",
    "DNS",
    "DOMAIN",
    "DSN",
    "ENDPOINT",
    "ENDPOINTS",
    "GATEWAY",
    "HOST",
    "HOSTNAME",
    "HOSTS",
    "INSECURE",
    "INSTANCE",
    "MIRROR",
    "ORIGIN",
    "PGSERVICE",
    "PORT",
    "PROXY",
    "REGISTRY",
    "RELAY",
    "SERVER",
    "SERVERS",
    "SITE",
    "SOCKET",
    "SSL",
    "TLS",
    "TUNNEL",
    "URI",
    "URL",
    "URLS",
    "VERIFY",
    "WEBHOOK",
];
/// The same, as beginnings and ends of names that are written in one word.
const LEADING_STARTS: [&str; 1] = ["PGSSL"];
const LEADING_ENDS: [&str; 8] = ["ADDR", "DOMAIN", "ENDPOINT", "HOST", "KEYLOGFILE", "PROXY", "URI", "URL"];

/// Whether a variable of this name says where a program sends what it has, keys among it.
pub(super) fn is_leading(name: &str) -> bool {
    let name = name.to_uppercase();
    name.split(['_', '-', '.']).any(|word| LEADING_WORDS.contains(&word))
        || LEADING_STARTS.iter().any(|start| name.starts_with(start))
        || LEADING_ENDS.iter().any(|end| name.ends_with(end))
}
