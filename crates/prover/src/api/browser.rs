//! Loopback TCP is open to every program of this host, a browser included, and a browser sends what any web page tells
//! it to: `POST /drain` needs no permission from us. So over TCP whatever a browser sends across sites is refused.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::refusal::Refused;

/// Refuses requests with an `Origin` (a page of another site), and those for a host name that is not this host's
/// loopback (another site's name that was made to resolve to it).
pub(crate) async fn refuse_browsers(request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    if request.headers().contains_key(header::ORIGIN) || !host.is_none_or(is_loopback) {
        let error =
            "not for web pages: over TCP only requests without Origin and for a loopback host are answered";
        return Refused::new(StatusCode::FORBIDDEN, error).into_response();
    }
    next.run(request).await
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<Authority>() else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_loopback_are_ours() {
        for host in ["localhost:9821", "127.0.0.1", "127.0.0.1:80", "[::1]:80"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["example.org", "127.0.0.1.example.org:80", "192.0.2.1", "localhost.example.org", ""] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
