//! The places that matter to every sandbox: where people keep credentials, where programs have their sockets, and what
//! in a folder of work is run or obeyed by others than the command. `docs/sandboxes.md` has the same lists, and a test
//! compares them.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What shows as an empty folder that can be written, and is the sandbox's own.
pub const PRIVATE: [&str; 2] = ["/tmp", "/var/tmp"];

/// Where programs of the system have their sockets: shown as empty folders.
pub const SOCKETS: [&str; 5] = ["/run", "/var/lib/incus", "/var/lib/lxd", "/var/snap/lxd", "/var/spool/postfix"];

/// Where the kernel shows itself: nothing there is for a command to write.
pub const KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Where people and programs keep credentials, below the home folder; and what they typed, which often holds some.
pub const CREDENTIALS: [&str; 131] = [
    ".ssh",
    ".gnupg",
    ".age",
    ".config/age",
    ".config/sops",
    ".password-store",
    ".vault-token",
    ".config/op",
    ".config/1Password",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".config/keepassxc",
    ".aws",
    ".azure",
    ".boto",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/linode-cli",
    ".config/openstack",
    ".config/rclone",
    ".config/scw",
    ".fly",
    ".ibmcloud",
    ".kube",
    ".oci",
    ".pulumi",
    ".s3cfg",
    ".terraform.d",
    ".terraformrc",
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/tea",
    ".netrc",
    ".bundle/config",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".config/containers/auth.json",
    ".config/netlify",
    ".config/pypoetry/auth.toml",
    ".config/vercel",
    ".docker",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".hex/hex.config",
    ".local/share/com.vercel.cli",
    ".local/share/containerd",
    ".local/share/containers",
    ".local/share/docker",
    ".local/share/gem/credentials",
    ".local/share/uv/credentials",
    ".m2/settings-security.xml",
    ".m2/settings.xml",
    ".npmrc",
    ".nuget/NuGet/NuGet.Config",
    ".pypirc",
    ".yarnrc.yml",
    ".cache/huggingface/token",
    ".huggingface",
    ".my.cnf",
    ".mylogin.cnf",
    ".pgpass",
    ".kde4/share/apps/kwallet",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".pki",
    ".Xauthority",
    ".ICEauthority",
    ".config/BraveSoftware",
    ".config/chromium",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/google-chrome-unstable",
    ".config/microsoft-edge",
    ".config/opera",
    ".config/vivaldi",
    ".librewolf",
    ".mozilla",
    ".thunderbird",
    ".waterfox",
    ".zen",
    ".var/app",
    "snap",
    ".config/Signal",
    ".config/Slack",
    ".config/discord",
    ".config/teams",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".config/github-copilot",
    ".cursor/mcp.json",
    ".gemini/.env",
    ".gemini/mcp-oauth-tokens.json",
    ".local/share/opencode/mcp-auth.json",
    ".config/goose/secrets.yaml",
    ".aider.conf.yml",
    ".config/io.datasette.llm/keys.json",
    ".config/configstore",
    ".config/argocd",
    ".config/helm/registry",
    ".cloudflared",
    ".databrickscfg",
    ".kaggle",
    ".subversion/auth",
    ".config/stripe",
    ".local/share/atuin",
    ".mcp.json",
    ".bash_history",
    ".zsh_history",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".rediscli_history",
    ".sqlite_history",
    ".config/pip/pip.conf",
    ".pip/pip.conf",
    ".config/filezilla",
    ".huggingface_token",
    ".bitcoin",
    ".electrum",
    ".ethereum",
];

/// Where the system keeps credentials, which root may read.
pub const OF_THE_SYSTEM: [&str; 27] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssh/ssh_host_dsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/letsencrypt",
    "/etc/krb5.keytab",
    "/etc/credstore",
    "/etc/credstore.encrypted",
    "/var/lib/systemd/credential.secret",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/var/lib/iwd",
    "/etc/wireguard",
    "/etc/ipsec.secrets",
    "/etc/ppp/chap-secrets",
    "/etc/kubernetes",
    "/etc/rancher",
    "/var/lib/kubelet",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
];

/// Variables that name such a place elsewhere; a colon may stand between several.
pub const CREDENTIAL_VARIABLES: [&str; 17] = [
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CONFIG_DIR",
    "CLOUDSDK_CONFIG",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_USERCONFIG",
    "PASSWORD_STORE_DIR",
    "PGPASSFILE",
    "REGISTRY_AUTH_FILE",
    "SSH_AUTH_SOCK",
    "VAULT_TOKEN_FILE",
    "XAUTHORITY",
];

/// Names in a folder that can be written which editors, agents, shells and hooks run or obey outside.
pub const GUARDED: [&str; 141] = [
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".helix",
    ".vim",
    ".nvim.lua",
    ".lazy.lua",
    ".nvimrc",
    ".exrc",
    ".vimrc",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".devcontainer",
    ".devcontainer.json",
    ".claude",
    ".codex",
    ".continue",
    ".cursor",
    ".gemini",
    ".opencode",
    ".roo",
    ".windsurf",
    ".amazonq",
    ".cline",
    ".copilot",
    ".kiro",
    ".qwen",
    ".trae",
    ".aider.conf.yml",
    ".mcp.json",
    "mcp.json",
    "opencode.json",
    "opencode.jsonc",
    ".github/hooks",
    ".junie",
    ".kilocode",
    ".factory",
    ".vs/mcp.json",
    ".openhands",
    ".pi",
    ".vibe",
    ".amp",
    "mise/config.toml",
    "prek.toml",
    ".pre-commit-config.yml",
    "servers.json",
    "footbridge.toml",
    ".crush.json",
    "crush.json",
    ".envrc",
    ".mise.toml",
    "mise.toml",
    ".mise",
    "mise.local.toml",
    ".mise.local.toml",
    ".config/mise",
    ".config/mise.toml",
    ".npmrc",
    ".pnpmfile.cjs",
    ".pnpmfile.mjs",
    ".yarn/plugins",
    ".yarn/releases",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    ".gdbinit",
    ".ghci",
    ".iex.exs",
    ".irbrc",
    ".lldbinit",
    ".ocamlinit",
    ".pdbrc",
    ".perldb",
    ".pryrc",
    ".Renviron",
    ".Rprofile",
    ".octaverc",
    ".rvmrc",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".lazygit.yml",
    ".RData",
    "irbrc",
    ".theia",
    ".bundle/config",
    ".ghcid",
    ".proverc",
    ".pylintrc",
    ".lvimrc",
    ".ycm_extra_conf.py",
    ".mvn/extensions.xml",
    ".mvn/jvm.config",
    ".mvn/maven.config",
    ".githooks",
    ".husky",
    ".pre-commit-config.yaml",
    ".lefthook",
    ".lefthook-local",
    "lefthook.yml",
    "lefthook.yaml",
    "lefthook.toml",
    "lefthook.json",
    ".lefthook.yml",
    ".lefthook.yaml",
    ".lefthook.toml",
    ".lefthook.json",
    "lefthook-local.yml",
    "lefthook-local.yaml",
    "lefthook-local.toml",
    "lefthook-local.json",
    ".lefthook-local.yml",
    ".lefthook-local.yaml",
    ".lefthook-local.toml",
    ".lefthook-local.json",
    ".config/lefthook.yml",
    ".config/lefthook.yaml",
    ".config/lefthook.toml",
    ".config/lefthook.json",
    ".overcommit.yml",
    ".hg/hgrc",
    ".hg/hgrc-not-shared",
    ".hg/sharedpath",
    ".jj/repo/config.toml",
    ".jj/repo/store/git_target",
    ".jj/workspace-config.toml",
    ".sl/config",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".inputrc",
    ".profile",
    ".zlogin",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".config/autostart",
    ".config/fish",
    ".config/systemd",
    ".gitconfig",
];

/// Those of editors, in whatever folder somebody opens.
pub const OF_EDITORS: [&str; 8] =
    [".devcontainer", ".devcontainer.json", ".fleet", ".helix", ".idea", ".nvim.lua", ".vscode", ".zed"];

/// Ends of names of files that editors open as a project, with what they run then.
pub const PROJECTS: [&str; 2] = [".code-workspace", ".sublime-project"];

/// Folders by which other tools than git take a folder for a repository.
pub const OTHER_REPOSITORIES: [&str; 3] = [".hg", ".jj", ".sl"];

/// Folders that hold what was built or fetched, of which there may be very many.
const BUILT_OR_FETCHED: [&str; 7] = [".cache", ".git", ".venv", "__pycache__", "node_modules", "target", "venv"];

/// Whether a folder of this name holds what was built or fetched, and not what people put there.
pub(super) fn is_built_or_fetched(name: &OsStr) -> bool {
    BUILT_OR_FETCHED.iter().any(|known| name == *known)
}

/// Names in a folder of git by which it runs programs or finds other settings, or repositories whose hooks run.
pub const GUARDED_IN_GIT: [&str; 9] =
    ["config", "config.worktree", "hooks", "commondir", "gitdir", "remotes", "branches", "sl/config", "lazygit.yml"];

/// Files in a folder of git by which a rebase or the like runs programs when it goes on. They are there while one is under
/// way, and whoever works in the folder may have to go on with it.
pub const BEGUN_IN_GIT: [&str; 4] =
    ["rebase-merge/git-rebase-todo", "rebase-merge/strategy", "rebase-apply/apply-opt", "sequencer/opts"];

/// Files that tell agents outside what to do. The command may write them, since much of its work is in such files.
pub const INSTRUCTIONS: [&str; 16] = [
    "AGENTS.md",
    "AGENTS.override.md",
    "AGENT.md",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "GEMINI.md",
    "QWEN.md",
    "CRUSH.md",
    "WARP.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".goosehints",
    ".rules",
    ".github/copilot-instructions.md",
    ".github/instructions",
];

/// Whether this is such a file, by its name.
#[must_use]
pub fn is_instruction(path: &Path) -> bool {
    INSTRUCTIONS.iter().any(|name| path.ends_with(name))
}

/// Whether an editor opens a file as a project, by its name.
pub(super) fn is_project(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    PROJECTS.iter().any(|end| name.ends_with(end.as_bytes()))
}

/// Whether a file or folder is one that others run or obey, or stands right in such a folder, by its name.
#[must_use]
pub fn is_guarded(path: &Path) -> bool {
    let of_git = |at: &Path| {
        at.ends_with(".git")
            || at.iter().any(|name| name == ".git") && GUARDED_IN_GIT.iter().any(|name| at.ends_with(name))
    };
    is_project(path) || path.ancestors().take(2).any(|at| GUARDED.iter().any(|name| at.ends_with(name)) || of_git(at))
}

/// Where the credentials of whoever has this home folder and these variables are; what is missing is named too.
pub fn credentials(home: Option<&Path>, var: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = CREDENTIALS.iter().filter_map(|name| Some(home?.join(name))).collect();
    let moved = [(".config/", "XDG_CONFIG_HOME"), (".local/share/", "XDG_DATA_HOME"), (".cache/", "XDG_CACHE_HOME")];
    for (prefix, name) in moved {
        let Some(folder) = var(name) else { continue };
        let below = CREDENTIALS.iter().filter_map(|name| name.strip_prefix(prefix));
        all.extend(below.map(|rest| Path::new(&folder).join(rest)));
    }
    for name in CREDENTIAL_VARIABLES {
        all.extend(var(name).iter().flat_map(std::env::split_paths).collect::<Vec<_>>());
    }
    all.retain(|path| path.is_absolute());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_below_the_home_folder_and_where_variables_name_them() {
        let var = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/c".into()),
            "KUBECONFIG" => Some("/k/one:relative:/k/two".into()),
            _ => None,
        };
        let found = credentials(Some(Path::new("/h")), var);
        for path in ["/h/.ssh", "/h/.config/gh", "/c/gh", "/k/one", "/k/two"] {
            assert!(found.contains(&PathBuf::from(path)), "{path}");
        }
        assert!(found.iter().all(|path| path.is_absolute()));
    }

    #[test]
    fn what_is_obeyed_is_known_by_its_name_and_by_that_of_its_folder() {
        for path in
            ["/w/.envrc", "/w/.git", "/w/.git/hooks", "/w/.git/modules/a/hooks/pre-commit", "/w/.vscode/tasks.json"]
        {
            assert!(is_guarded(Path::new(path)), "{path}");
        }
        for path in ["/w", "/w/hooks", "/w/config", "/w/.claude/worktrees/one", "/w/.git/objects/pack"] {
            assert!(!is_guarded(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn the_documentation_has_the_same_lists() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sandboxes.md")).unwrap();
        let all =
            CREDENTIALS.iter().chain(&CREDENTIAL_VARIABLES).chain(&GUARDED).chain(&OF_EDITORS).chain(&GUARDED_IN_GIT);
        for name in all
            .chain(&PROJECTS)
            .chain(&BEGUN_IN_GIT)
            .chain(&INSTRUCTIONS)
            .chain(&PRIVATE)
            .chain(&SOCKETS)
            .chain(&OF_THE_SYSTEM)
        {
            assert!(text.contains(&format!("`{name}`")), "docs/sandboxes.md does not name {name}");
        }
    }
}
