//! A URL that one of our programs is told to ask: where, and for what.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use crate::client::Endpoint;

/// An endpoint and a path on it.
///
/// Written `http://127.0.0.1:9821/status` (an IP address or `localhost`: a name would have to be looked up, which can
/// hang), or `unix:/run/prover.sock` with the path after a second colon, `unix:/run/prover.sock:/readyz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Where.
    pub endpoint: Endpoint,
    /// What, beginning with `/`; queries included.
    pub path: String,
}

/// Not such a URL.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{url}\" is not a URL to ask: {reason}; write http://127.0.0.1:PORT/PATH or unix:/FILE:/PATH")]
pub struct TargetError {
    url: String,
    reason: &'static str,
}

impl Target {
    /// `path` on a Unix socket.
    #[must_use]
    pub fn unix(socket: PathBuf, path: &str) -> Self {
        Self { endpoint: Endpoint::Unix(socket), path: path.to_owned() }
    }

    /// The same place, another path.
    #[must_use]
    pub fn with_path(&self, path: &str) -> Self {
        Self { endpoint: self.endpoint.clone(), path: path.to_owned() }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(url: &str) -> Result<Self, TargetError> {
        let refuse = |reason| TargetError { url: url.to_owned(), reason };
        if url.chars().any(|c| c.is_control() || c == ' ') {
            return Err(refuse("it holds a space or a control character"));
        }
        if let Some(rest) = url.strip_prefix("http://") {
            let (authority, path) = match rest.find(['/', '?', '#']) {
                Some(at) if rest[at..].starts_with('/') => rest.split_at(at),
                Some(_) => return Err(refuse("the path is missing before \"?\" or \"#\"")),
                None => (rest, "/"),
            };
            return Ok(Self {
                endpoint: Endpoint::Tcp(address(authority).map_err(refuse)?),
                path: path.to_owned(),
            });
        }
        if let Some(rest) = url.strip_prefix("unix:") {
            let (file, path) = rest
                .split_once(":/")
                .map_or((rest, "/".to_owned()), |(file, path)| (file, format!("/{path}")));
            let file = file.strip_prefix("//").filter(|file| file.starts_with('/')).unwrap_or(file);
            if !file.starts_with('/') {
                return Err(refuse("the socket's path is not absolute"));
            }
            return Ok(Self { endpoint: Endpoint::Unix(file.into()), path });
        }
        Err(refuse(if url.starts_with("https://") {
            "https is not spoken here"
        } else {
            "it has no known scheme"
        }))
    }
}

fn address(authority: &str) -> Result<SocketAddr, &'static str> {
    if authority.contains('@') {
        return Err("user and password are not sent");
    }
    if let Ok(address) = authority.parse() {
        return Ok(address);
    }
    // The colons of an IPv6 address are in brackets.
    let with_port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let (host, port) = with_port.unwrap_or((authority, "80"));
    let port = port.parse().map_err(|_| "the port is not a number up to 65535")?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(ip) => Ok(SocketAddr::new(ip, port)),
        Err(_) if host == "localhost" => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => Err("the host is neither an IP address nor localhost"),
    }
}

impl fmt::Display for Target {
    /// As it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.endpoint {
            Endpoint::Unix(file) => write!(f, "unix:{}:{}", file.display(), self.path),
            Endpoint::Tcp(address) => write!(f, "http://{address}{}", self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_and_written_again() {
        for (url, shown) in [
            ("http://127.0.0.1:9821/status", "http://127.0.0.1:9821/status"),
            ("http://localhost:9821/a?b=c", "http://127.0.0.1:9821/a?b=c"),
            ("http://127.0.0.1", "http://127.0.0.1:80/"),
            ("http://[::1]:9821/status", "http://[::1]:9821/status"),
            ("http://[::1]/status", "http://[::1]:80/status"),
            ("unix:/run/p.sock", "unix:/run/p.sock:/"),
            ("unix:///run/p.sock:/readyz", "unix:/run/p.sock:/readyz"),
            ("unix:/run/p.sock:/readyz", "unix:/run/p.sock:/readyz"),
        ] {
            let target: Target = url.parse().unwrap();
            assert_eq!(target.to_string(), shown, "{url}");
            assert_eq!(shown.parse::<Target>().unwrap(), target, "{shown}");
        }
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_its_reason() {
        for (url, reason) in [
            ("https://127.0.0.1/", "https is not spoken here"),
            ("127.0.0.1:9821", "it has no known scheme"),
            ("http://prover.example:9821/", "the host is neither an IP address nor localhost"),
            ("http://127.0.0.1:98210/", "the port is not a number up to 65535"),
            ("http://127.0.0.1:9821?x", "the path is missing before \"?\" or \"#\""),
            ("http://me:secret@127.0.0.1/", "user and password are not sent"),
            ("http://127.0.0.1/a\r\nb", "it holds a space or a control character"),
            ("unix:run/p.sock", "the socket's path is not absolute"),
        ] {
            assert_eq!(url.parse::<Target>().unwrap_err().reason, reason, "{url}");
        }
    }
}
