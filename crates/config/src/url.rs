//! Addresses of HTTP servers.

use std::fmt;
use std::str::FromStr;

use toml::Value;

use crate::fault::Problem;
use crate::node::Node;
use crate::setting::{Setting, read_string};

/// `http://HOST[:PORT][/PATH]`: a server of this host or of one that is trusted, without TLS and without a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpUrl {
    text: String,
    host: String,
    port: u16,
    path: String,
}

impl HttpUrl {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Name or address; one of IPv6 without its brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// 80 where none is written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// With its query, from the `/` on; `/` where none is written.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for HttpUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |why: &str| format!("\"{text}\" {why}: write {}", Self::kind());
        let rest = text.strip_prefix("http://").ok_or_else(|| bad("does not begin with http://"))?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        if !text.chars().all(|c| c.is_ascii_graphic()) || text.contains('#') {
            return Err(bad("has characters that no URL has"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']').ok_or_else(|| bad("has a [ without its ]"))?;
                address.parse::<std::net::Ipv6Addr>().map_err(|_| bad("has no IPv6 address in its []"))?;
                (address, rest.strip_prefix(':').or(rest.is_empty().then_some("80")))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, Some("80")),
            },
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if host.is_empty() || !host.chars().all(is_name) {
            return Err(bad("has no host"));
        }
        let port = port.and_then(|port| port.parse().ok()).filter(|port| *port > 0);
        let port = port.ok_or_else(|| bad("has a port that is none"))?;
        Ok(Self { text: text.to_owned(), host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Setting for HttpUrl {
    fn kind() -> String {
        "a URL like \"http://127.0.0.1:9821/status\"".to_owned()
    }

    fn read(node: &Node) -> Result<Self, Vec<Problem>> {
        read_string(node, Self::from_str)
    }

    fn write(&self) -> Option<Value> {
        Some(Value::String(self.text.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::HttpUrl;

    #[test]
    fn parts_of_a_url() {
        let parts = |text: &str| {
            text.parse().map(|url: HttpUrl| (url.host().to_owned(), url.port(), url.path().to_owned()))
        };
        let part = |host: &str, port, path: &str| Ok((host.to_owned(), port, path.to_owned()));
        assert_eq!(parts("http://127.0.0.1:9821/status?a=b"), part("127.0.0.1", 9821, "/status?a=b"));
        assert_eq!(parts("http://localhost"), part("localhost", 80, "/"));
        assert_eq!(parts("http://[::1]:80/"), part("::1", 80, "/"));
        assert_eq!(parts("http://[::1]"), part("::1", 80, "/"));
    }

    #[test]
    fn what_is_no_url_of_ours_is_refused() {
        for bad in [
            "",
            "localhost:9821",
            "https://localhost/",
            "http://",
            "http:///status",
            "http://:80/",
            "http://h:0/",
            "http://h:65536/",
            "http://h:/",
            "http://u@h/",
            "http://[::1",
            "http://[x]/",
            "http://[::1]9/",
            "http://h/a b",
            "http://h/#x",
            "http://h/\r\nX: y",
        ] {
            assert!(bad.parse::<HttpUrl>().is_err(), "{bad}");
        }
    }
}
