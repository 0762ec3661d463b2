//! From an instance to numbers: the witness, and the matrices that hold it.

use std::time::{Duration, Instant};

use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, Matrix, OptimizationGoal, R1CS_PREDICATE_LABEL, SynthesisError,
    SynthesisMode,
};
use rayon::prelude::*;

use crate::{Instance, Scalar, Shape};

/// Why an instance has no witness.
#[derive(Debug, thiserror::Error)]
pub enum SynthesisFailure {
    /// What the instance claims does not follow from its private inputs.
    #[error(
        "{shape} instance is not satisfied: constraint {constraint} of {constraints} does not hold, check the inputs"
    )]
    Unsatisfied {
        /// The instance's shape.
        shape: Shape,
        /// Index of the first constraint that does not hold.
        constraint: usize,
        /// Constraints in all.
        constraints: usize,
    },
    /// The constraint system refused the circuit, which is a defect of the circuit.
    #[error("cannot synthesize {shape}: {source}")]
    Circuit {
        /// The instance's shape.
        shape: Shape,
        /// What it said.
        source: SynthesisError,
    },
}

/// A satisfied instance as numbers: all that proving needs besides the key.
///
/// It is what synthesis hands to the prover, so it is the unit that an engine queues between the two.
#[derive(Clone, Debug)]
pub struct Synthesized {
    pub(crate) shape: Shape,
    /// A, B and C of A·z ∘ B·z = C·z as rows of (coefficient, column).
    pub(crate) matrices: Vec<Matrix<Scalar>>,
    /// z: one, the public inputs, the witness.
    pub(crate) assignment: Vec<Scalar>,
    pub(crate) public_inputs: usize,
    pub(crate) constraints: usize,
    pub(crate) elapsed: Duration,
}

impl Synthesized {
    /// The shape, which says what key proves this.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The public inputs, the constant one left out.
    pub fn public_inputs(&self) -> &[Scalar] {
        &self.assignment[1..=self.public_inputs]
    }

    /// Rows of the constraint system.
    pub fn constraints(&self) -> usize {
        self.constraints
    }

    /// How long synthesis took.
    pub fn elapsed(&self) -> Duration {
        self.elapsed
    }
}

/// Computes the witness of `instance` and checks every constraint, so that no invalid proof is ever made.
///
/// # Errors
/// [`SynthesisFailure::Unsatisfied`] where the claim is wrong.
pub fn synthesize(instance: &Instance) -> Result<Synthesized, SynthesisFailure> {
    let start = Instant::now();
    let shape = instance.shape();
    let circuit = |source| SynthesisFailure::Circuit { shape, source };

    let cs = ConstraintSystem::new_ref();
    cs.set_optimization_goal(OptimizationGoal::Constraints);
    cs.set_mode(SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false });
    instance.generate_constraints(cs.clone()).map_err(circuit)?;
    cs.finalize();

    let mut matrices = cs.to_matrices().map_err(circuit)?;
    let matrices = matrices.remove(R1CS_PREDICATE_LABEL).ok_or(circuit(SynthesisError::PredicateNotFound))?;
    let instance_variables = cs.num_instance_variables();
    let constraints = cs.num_constraints();
    let cs = cs.into_inner().ok_or(circuit(SynthesisError::MissingCS))?;
    let mut assignment = cs.assignments.instance_assignment;
    assignment.extend(cs.assignments.witness_assignment);

    if let Some(constraint) = first_unsatisfied(&matrices, &assignment) {
        return Err(SynthesisFailure::Unsatisfied { shape, constraint, constraints });
    }
    let public_inputs = instance_variables - 1;
    Ok(Synthesized { shape, matrices, assignment, public_inputs, constraints, elapsed: start.elapsed() })
}

/// Index of the first row where A·z ∘ B·z = C·z does not hold.
fn first_unsatisfied(matrices: &[Matrix<Scalar>], assignment: &[Scalar]) -> Option<usize> {
    let [a, b, c] = matrices else { return Some(0) };
    let dot = |row: &Vec<(Scalar, usize)>| -> Scalar {
        row.iter().map(|(coefficient, column)| *coefficient * assignment[*column]).sum()
    };
    (0..a.len()).into_par_iter().find_first(|&row| dot(&a[row]) * dot(&b[row]) != dot(&c[row]))
}
