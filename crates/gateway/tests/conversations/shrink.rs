//! Cutting a conversation that fails down to what it takes to fail.

use super::script::{Act, Script};

/// The shortest script found that still fails, by leaving out acts, frames and
/// messages, ever fewer at a time, as long as `fails` says that it does; at
/// most `tries` times.
pub(crate) fn shrink(
    script: &Script,
    mut tries: usize,
    mut fails: impl FnMut(&Script) -> bool,
) -> Script {
    let mut best = script.clone();
    let mut size = best.acts.len().div_ceil(2);
    while size > 0 && tries > 0 {
        let before = best.acts.len();
        let mut at = 0;
        while at < best.acts.len() && tries > 0 {
            let mut shorter = best.clone();
            shorter.acts.drain(at..(at + size).min(best.acts.len()));
            tries -= 1;
            if fails(&shorter) {
                best = shorter;
            } else {
                at += size;
            }
        }
        // One by one as long as that helps: what is left out may be what
        // another needed.
        if size > 1 || best.acts.len() == before {
            size /= 2;
        }
    }
    while tries > 0 {
        let Some(shorter) = smaller(&best).into_iter().find(|candidate| {
            tries = tries.saturating_sub(1);
            tries > 0 && fails(candidate)
        }) else {
            break;
        };
        best = shorter;
    }
    best
}

/// Scripts with one frame or message less, or said fewer times.
fn smaller(script: &Script) -> Vec<Script> {
    let mut all = Vec::new();
    for (index, act) in script.acts.iter().enumerate() {
        let Act::Send { frames, piece, .. } = act else {
            continue;
        };
        let mut push = |change: &dyn Fn(&mut Act)| {
            let mut candidate = script.clone();
            change(&mut candidate.acts[index]);
            all.push(candidate);
        };
        if *piece != usize::MAX {
            push(&|act| {
                if let Act::Send { piece, .. } = act {
                    *piece = usize::MAX;
                }
            });
        }
        for (place, frame) in frames.iter().enumerate() {
            if frames.len() > 1 {
                push(&|act| {
                    if let Act::Send { frames, .. } = act {
                        frames.remove(place);
                    }
                });
            }
            if frame.times > 1 {
                push(&|act| {
                    if let Act::Send { frames, .. } = act {
                        frames[place].times /= 2;
                    }
                });
            }
            for message in 0..frame.messages.len() {
                if frame.messages.len() > 1 {
                    push(&|act| {
                        if let Act::Send { frames, .. } = act {
                            frames[place].messages.remove(message);
                        }
                    });
                }
            }
        }
    }
    all
}
