//! What plugs into the remote end: a service for each thing the local end can ask
//! for.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::session::Session;

/// Something the remote end does for those who have proved themselves.
pub trait Service: Send + Sync + 'static {
    /// The name by which it is asked for.
    fn name(&self) -> &'static str;

    /// Begins a job. Sockets and threads for it come from `session`; what
    /// takes long belongs on one of those threads, since the control connection
    /// waits for this to return.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which the local end is sent.
    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal>;
}

/// A job under way. It lives as long as the local end's control connection, unless
/// that ends it before; dropping it ends what it does.
///
/// None of these may take longer than a few seconds: the control connection waits,
/// and with it the probes by which the local end knows that the remote end lives.
pub trait Job: Send + 'static {
    /// Answers something the local end asks while the job is under way.
    ///
    /// # Errors
    ///
    /// [`Refusal`], which the local end is sent.
    fn ask(&mut self, body: &Value) -> Result<Value, Refusal> {
        let _ = body;
        Err(Refusal::new("it takes no questions while it is under way"))
    }

    /// Ends it and reports what it found.
    #[must_use]
    fn finish(self: Box<Self>) -> Value {
        Value::Null
    }
}

/// A job that has begun.
pub struct Accepted {
    pub(crate) reply: Value,
    pub(crate) job: Box<dyn Job>,
}

impl Accepted {
    /// A job, and what the local end is sent of it: ports, for one.
    #[must_use]
    pub fn new(reply: Value, job: impl Job) -> Self {
        Self {
            reply,
            job: Box::new(job),
        }
    }
}

impl fmt::Debug for Accepted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Accepted")
            .field("reply", &self.reply)
            .finish_non_exhaustive()
    }
}

/// Why the remote end does not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{why}")]
pub struct Refusal {
    why: String,
}

impl Refusal {
    /// A reason in one line, with the mend.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into() }
    }
}

/// What the other end said, as `what` it is called where it is not
/// understood.
///
/// # Errors
///
/// A [`Refusal`] that says so.
pub fn understand<'a, T: Deserialize<'a>>(what: &str, said: &'a Value) -> Result<T, Refusal> {
    T::deserialize(said).map_err(|error| Refusal::new(format!("{what} is not understood: {error}")))
}

/// The services of a remote end, by name.
#[derive(Clone, Default)]
pub struct Registry {
    services: BTreeMap<&'static str, Arc<dyn Service>>,
}

impl Registry {
    /// No services at all.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// These services and one more; another of the same name gives way to it.
    #[must_use]
    pub fn with(mut self, service: impl Service) -> Self {
        self.services.insert(service.name(), Arc::new(service));
        self
    }

    /// Their names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.services.keys().copied()
    }

    pub(crate) fn find(&self, name: &str) -> Result<&dyn Service, Refusal> {
        self.services.get(name).map(AsRef::as_ref).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            Refusal::new(format!(
                "it is not served here; there are: {}",
                names.join(", ")
            ))
        })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.services.keys()).finish()
    }
}
