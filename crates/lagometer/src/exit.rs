//! The codes with which this program ends, and what each says.

use std::process::ExitCode;

/// What a command's end says to a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All was done.
    Done,
    /// It was played, and what was to hold does not.
    DoesNotHold,
    /// The input was wrong.
    BadInput,
    /// The environment lacks something.
    Environment,
    /// The user interrupted it: 128 and the number of SIGINT, as shells have it.
    Interrupted,
}

impl Exit {
    /// All there are, in the order of their codes.
    pub(crate) const ALL: [Self; 5] = [
        Self::Done,
        Self::DoesNotHold,
        Self::BadInput,
        Self::Environment,
        Self::Interrupted,
    ];

    /// The code, as the shell sees it.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::DoesNotHold => 1,
            Self::BadInput => 2,
            Self::Environment => 3,
            Self::Interrupted => 130,
        }
    }

    /// When a command ends with it, in Markdown.
    pub(crate) const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "what was asked for was done",
            Self::DoesNotHold => {
                "it was done, and what was to hold does not: under `--assert` a budget was \
                 missed, the run was not valid or something became worse than in the baseline, `agree` found `sim` and `emu` apart or could not decide, \
                 `replay` found something else than the bundle, `shape --twice` saw two runs differ"
            }
            Self::BadInput => {
                "the input was wrong: the command line, a file, a name; one line says what and where"
            }
            Self::Environment => {
                "the environment lacks something: a permission, a port, a peer that answers, room \
                 to write, real time for a guest; one line says what and how to mend it"
            }
            Self::Interrupted => {
                "interrupted, and nothing can be said yet (`agree`), the program behind the link was \
                 cut short (`shape`), or there is more to search (`tune`, which goes on from its \
                 `--state`)"
            }
        }
    }

    /// The code of what is to hold.
    pub(crate) const fn of(holds: bool) -> Self {
        if holds { Self::Done } else { Self::DoesNotHold }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
