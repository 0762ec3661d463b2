//! One request, one answer, with a deadline.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use sexton_model::units::Human;

use crate::prover::Refusal;

/// The largest answer that is read where nothing else was asked for, in bytes: a proof and a page of runs are far below.
pub const ANSWER_MAX_BYTES: usize = 16 << 20;

/// Where a program listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Path of a Unix socket.
    Unix(PathBuf),
    /// Address of a TCP listener.
    Tcp(SocketAddr),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "http://{address}"),
        }
    }
}

/// Why there is no answer, or not the one that was wanted.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The socket is absent, or nobody accepts on it.
    #[error("nothing listens on {0}")]
    NotRunning(Endpoint),
    /// The connection failed otherwise: permissions, a reset.
    #[error("cannot talk to {0}: {1}")]
    Io(Endpoint, #[source] io::Error),
    /// The other side does not speak HTTP, or broke off.
    #[error("{0} broke off: {1}")]
    Http(Endpoint, #[source] hyper::Error),
    /// No complete answer in time.
    #[error("{0} did not answer within {1}")]
    Timeout(Endpoint, Human),
    /// An answer other than 2xx, with the server's own words.
    #[error("{message}")]
    Refused {
        /// HTTP status, 400–599.
        status: u16,
        /// What the server says.
        message: String,
    },
    /// An answer that is not what the route promises.
    #[error("{0} answered with something else than expected: {1}")]
    Decode(Endpoint, String),
}

/// A whole answer of any status.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// Asks programs at one endpoint, a connection for each request: what is asked is asked seldom.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Endpoint,
    timeout: Duration,
    answer_max_bytes: usize,
}

impl Client {
    /// A client that gives each request `timeout` from connecting to the last byte.
    pub fn new(endpoint: Endpoint, timeout: Duration) -> Self {
        Self { endpoint, timeout, answer_max_bytes: ANSWER_MAX_BYTES }
    }

    /// The same, reading no answer that is longer than `bytes`.
    #[must_use]
    pub fn with_answer_max(self, bytes: usize) -> Self {
        Self { answer_max_bytes: bytes, ..self }
    }

    /// Where it asks.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// `GET path`, a JSON answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.decode(self.send(Method::GET, path, Bytes::new()).await?)
    }

    /// `POST path` with a JSON body, a JSON answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body)
            .map_err(|e| ClientError::Decode(self.endpoint.clone(), e.to_string()))?;
        self.decode(self.send(Method::POST, path, body.into()).await?)
    }

    /// `DELETE path`, a JSON answer.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.decode(self.send(Method::DELETE, path, Bytes::new()).await?)
    }

    /// Sends one request and reads the whole answer, whatever its status.
    ///
    /// # Errors
    /// [`ClientError`], but never `Refused`.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, ClientError> {
        let late = |_| ClientError::Timeout(self.endpoint.clone(), Human(self.timeout));
        tokio::time::timeout(self.timeout, self.connect_and_send(method, path, body)).await.map_err(late)?
    }

    async fn connect_and_send(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, ClientError> {
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                ClientError::NotRunning(self.endpoint.clone())
            }
            _ => ClientError::Io(self.endpoint.clone(), error),
        };
        match &self.endpoint {
            Endpoint::Unix(socket) => {
                self.exchange(UnixStream::connect(socket).await.map_err(failed)?, method, path, body).await
            }
            Endpoint::Tcp(address) => {
                self.exchange(TcpStream::connect(address).await.map_err(failed)?, method, path, body).await
            }
        }
    }

    async fn exchange<S>(
        &self,
        stream: S,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, ClientError>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let broken = |error| ClientError::Http(self.endpoint.clone(), error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let host = match &self.endpoint {
            Endpoint::Unix(_) => "localhost".to_owned(),
            Endpoint::Tcp(address) => address.to_string(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| ClientError::Decode(self.endpoint.clone(), format!("{path}: {error}")))?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(broken)?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), self.answer_max_bytes).collect().await;
            let body = body.map_err(|error| ClientError::Decode(self.endpoint.clone(), error.to_string()))?;
            Ok(Answer { status, body: body.to_bytes() })
        };
        // The connection is driven here and not in a task of its own, so that giving up on the answer closes it.
        tokio::pin!(answer, connection);
        tokio::select! {
            answer = &mut answer => answer,
            ended = &mut connection => match ended {
                Err(error) => Err(broken(error)),
                Ok(()) => answer.await,
            },
        }
    }

    fn decode<T: DeserializeOwned>(&self, answer: Answer) -> Result<T, ClientError> {
        if !StatusCode::from_u16(answer.status).is_ok_and(|status| status.is_success()) {
            let message = match serde_json::from_slice::<Refusal>(&answer.body) {
                Ok(refusal) => refusal.error,
                Err(_) => format!("{} answered with status {}", self.endpoint, answer.status),
            };
            return Err(ClientError::Refused { status: answer.status, message });
        }
        serde_json::from_slice(&answer.body)
            .map_err(|e| ClientError::Decode(self.endpoint.clone(), e.to_string()))
    }
}
