//! `prover prove … --socket`: a running server makes the proof, and nothing of its answer is believed.
//!
//! The job is submitted, waited for in long polls, and checked here: that it is of the circuit asked for, that its
//! public inputs are those of the statement asked for (where they do not depend on a random x), and that the proof
//! verifies against them and the server's verifying key. Whose key that is, its `key_id` says.

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use sexton_control::client::{ClientError, Endpoint};
use sexton_control::prover::client::ProverClient;
use sexton_control::prover::{JobState, Priority, ProofAnswer, ProofFormat, ProofRequest};
use sexton_groth16::format::{self, FormatError};
use sexton_groth16::{Proof, Scalar, VerifyingKey};
use sexton_model::units::Human;

use super::{Made, statement_failure};
use crate::exit::{self, Failure};
use crate::output::say;
use crate::statement::Statement;

/// How long the server may take for an answer that needs no proving.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at where a job is, which a person at a terminal is told.
const LONG_POLL: Duration = Duration::from_secs(20);
/// From here on a key is worth a line, since whoever waited for the proof waited for it too.
const LONG_FOR_A_KEY_US: u64 = 1_000_000;

/// Has the server at `socket` prove `statement`.
pub(super) fn prove(socket: &Path, statement: &Statement) -> Result<Made, Failure> {
    let (circuit, inputs) = statement.to_json().map_err(statement_failure)?;
    let request = ProofRequest {
        id: None,
        circuit: circuit.to_owned(),
        inputs,
        priority: Priority::Normal,
        deadline_seconds: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(exit::SYSTEM, error))?;
    let client = ProverClient::new(Endpoint::Unix(socket.to_owned()), PATIENCE);
    let answered = runtime.block_on(ask(&client, socket, &request, statement));
    let (answer, key_id, vk) = answered?;
    check(answer, &key_id, vk, statement)
        .map_err(|wrong| Failure::new(exit::PROTOCOL, format_args!("{}: {wrong}", socket.display())))
}

/// Submits, waits for the end, and fetches the key: the answer, the key's id and the key.
async fn ask(
    client: &ProverClient,
    socket: &Path,
    request: &ProofRequest,
    statement: &Statement,
) -> Result<(ProofAnswer, String, Value), Failure> {
    let failed = |error| client_failure(socket, error);
    let id = client.submit(request).await.map_err(failed)?.id;
    let terminal = std::io::stderr().is_terminal();
    let mut told = None;
    let answer = loop {
        let answer = client.wait(&id, ProofFormat::Native, LONG_POLL).await.map_err(failed)?;
        if answer.state.is_ended() {
            break answer;
        }
        if terminal && told != Some(answer.state) {
            say(&format!("{}: job {id} is {}", socket.display(), answer.state.name()));
            told = Some(answer.state);
        }
    };
    let why = answer.error.as_deref().unwrap_or("no reason given");
    let ended = |code, how: &str| {
        Err(Failure::new(code, format_args!("{}: job {id} {how} ({why})", socket.display())))
    };
    match answer.state {
        JobState::Done => {}
        JobState::HandedBack => {
            return ended(exit::TEMPORARY, "was handed back by a draining server: try again");
        }
        JobState::Cancelled => return ended(exit::FAILED, "was cancelled by somebody else"),
        _ => return ended(exit::FAILED, "failed"),
    }
    let shape = statement.shape().to_string();
    let key = client.verifying_key(&shape, ProofFormat::Native).await.map_err(failed)?;
    Ok((answer, key.key_id, key.vk))
}

/// Takes an answer apart and verifies it; the error says what is wrong with it.
fn check(answer: ProofAnswer, key_id: &str, vk: Value, statement: &Statement) -> Result<Made, String> {
    let shape = statement.shape();
    if answer.circuit != shape.to_string() {
        return Err(format!("proved {} instead of {shape}", answer.circuit));
    }
    if answer.key_id.as_deref() != Some(key_id) {
        return Err(format!("the proof was made with another key than the {key_id} given for it"));
    }
    let (proof, public_inputs, verifying_key) = read(&answer, vk).map_err(|error| error.to_string())?;
    if let Some(of_key) = verifying_key.shape()
        && of_key != shape
    {
        return Err(format!("the verifying key given is for {of_key}, not {shape}"));
    }
    if statement.is_repeatable() {
        let asked = statement.instance().map_err(|error| error.to_string())?.public_inputs();
        if asked != public_inputs {
            return Err("proved another statement than the one asked for".to_owned());
        }
    }
    verifying_key.verify(&proof, &public_inputs).map_err(|error| error.to_string())?;
    let timings = answer.timings;
    let key_us = timings.key_us.unwrap_or(0);
    if key_us > LONG_FOR_A_KEY_US {
        say(&format!("the server took {} to make or read its key", Human(Duration::from_micros(key_us))));
    }
    let before = timings.queued_us.saturating_add(key_us);
    Ok(Made {
        proof,
        public_inputs,
        verifying_key,
        key_id: key_id.to_owned(),
        development_key: answer.development_key.unwrap_or(true),
        took: Duration::from_micros(timings.total_us.saturating_sub(before)),
        timings: json!(timings),
        job_id: Some(answer.id),
    })
}

/// The one proof, its inputs and the key, of an answer in our format.
fn read(answer: &ProofAnswer, vk: Value) -> Result<(Proof, Vec<Scalar>, VerifyingKey), FormatError> {
    let text = |document: &Option<Value>| document.as_ref().unwrap_or(&Value::Null).to_string();
    let proofs = format::read_proofs(&text(&answer.proof))?.proofs;
    let inputs = format::read_public_inputs(&text(&answer.public))?.inputs;
    let one = |field: &str, found| FormatError::Length { field: field.to_owned(), found, expected: 1 };
    let [proof] = proofs[..] else { return Err(one("proofs", proofs.len())) };
    let [inputs] = <[_; 1]>::try_from(inputs).map_err(|inputs| one("inputs", inputs.len()))?;
    Ok((proof, inputs, format::read_verifying_key(&vk.to_string())?))
}

fn client_failure(socket: &Path, error: ClientError) -> Failure {
    let message = match &error {
        ClientError::NotRunning(_) => {
            format!("{error}: start one with `supervisor run`, or `prover serve --socket PATH`")
        }
        ClientError::Refused { message, .. } => format!("{} refused: {message}", socket.display()),
        _ => error.to_string(),
    };
    let code = match error {
        ClientError::NotRunning(_) => exit::NOT_RUNNING,
        ClientError::Io(..) | ClientError::Http(..) => exit::IO,
        ClientError::Timeout(..) | ClientError::Refused { status: 503, .. } => exit::TEMPORARY,
        ClientError::Refused { .. } => exit::FAILED,
        ClientError::Decode(..) => exit::PROTOCOL,
    };
    Failure::new(code, message)
}
