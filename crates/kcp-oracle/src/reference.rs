//! Which source of the reference an oracle runs: its functions, and where its
//! block differs.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{error, fmt, mem};

use kcp_io::sys::{
    IKCPCB, IQUEUEHEAD, ikcp_check, ikcp_create, ikcp_flush, ikcp_input, ikcp_nodelay,
    ikcp_peeksize, ikcp_recv, ikcp_release, ikcp_send, ikcp_setmtu, ikcp_setoutput, ikcp_update,
    ikcp_waitsnd, ikcp_wndsize,
};

type Block = *mut IKCPCB;
type Emit = unsafe extern "C" fn(*const c_char, c_int, Block, *mut c_void) -> c_int;

/// The functions of one source of KCP's C code.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub(crate) create: unsafe extern "C" fn(u32, *mut c_void) -> Block,
    pub(crate) release: unsafe extern "C" fn(Block),
    pub(crate) nodelay: unsafe extern "C" fn(Block, c_int, c_int, c_int, c_int) -> c_int,
    pub(crate) wndsize: unsafe extern "C" fn(Block, c_int, c_int) -> c_int,
    pub(crate) setmtu: unsafe extern "C" fn(Block, c_int) -> c_int,
    pub(crate) send: unsafe extern "C" fn(Block, *const c_char, c_int) -> c_int,
    pub(crate) recv: unsafe extern "C" fn(Block, *mut c_char, c_int) -> c_int,
    pub(crate) peeksize: unsafe extern "C" fn(*const IKCPCB) -> c_int,
    pub(crate) input: unsafe extern "C" fn(Block, *const c_char, c_long) -> c_int,
    pub(crate) update: unsafe extern "C" fn(Block, u32),
    pub(crate) flush: unsafe extern "C" fn(Block),
    pub(crate) check: unsafe extern "C" fn(*const IKCPCB, u32) -> u32,
    pub(crate) waitsnd: unsafe extern "C" fn(*const IKCPCB) -> c_int,
    pub(crate) set_output: unsafe fn(Block, Emit),
    /// Neither `fastlimit` nor `stream`, and `ikcp_send` says 0 for all.
    pub(crate) of_2015: bool,
}

/// Why a library is no reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotLoad(String);

impl fmt::Display for CannotLoad {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl error::Error for CannotLoad {}

impl Reference {
    /// The current source, as the package has it.
    #[must_use]
    pub fn current() -> Self {
        Self {
            create: ikcp_create,
            release: ikcp_release,
            nodelay: ikcp_nodelay,
            wndsize: ikcp_wndsize,
            setmtu: ikcp_setmtu,
            send: ikcp_send,
            recv: ikcp_recv,
            peeksize: ikcp_peeksize,
            input: ikcp_input,
            update: ikcp_update,
            flush: ikcp_flush,
            check: ikcp_check,
            waitsnd: ikcp_waitsnd,
            set_output: |block, emit| {
                // SAFETY: the caller has a block of this reference.
                unsafe { ikcp_setoutput(block, emit) }
            },
            of_2015: false,
        }
    }

    /// The source of 2015, from a shared library of it. It stays loaded.
    ///
    /// The library must be what it is said to be: a block of another year is laid
    /// out otherwise.
    ///
    /// # Errors
    ///
    /// [`CannotLoad`] where there is no such library, or it lacks a function.
    #[expect(
        clippy::missing_transmute_annotations,
        reason = "each function's type is that of the field it becomes"
    )]
    pub fn load_2015(path: &Path) -> Result<Self, CannotLoad> {
        let cannot = |what: &str| CannotLoad(format!("{}: {what}", path.display()));
        let name =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| cannot("a zero in the name"))?;
        // SAFETY: the name ends with a zero. What the library does when it is
        // loaded is for who named it.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(cannot("cannot be loaded as a shared library"));
        }
        let find = |name: &CStr| {
            // SAFETY: the library is loaded and the name ends with a zero.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            let missing = || cannot(&format!("has no {}", name.to_string_lossy()));
            (!found.is_null()).then_some(found).ok_or_else(missing)
        };
        /// The function of a name, of the type of the field it becomes.
        macro_rules! function {
            ($name:literal) => {{
                let found = find($name)?;
                // SAFETY: the functions have had these types since 2011.
                unsafe { mem::transmute::<*mut c_void, _>(found) }
            }};
        }
        Ok(Self {
            create: function!(c"ikcp_create"),
            release: function!(c"ikcp_release"),
            nodelay: function!(c"ikcp_nodelay"),
            wndsize: function!(c"ikcp_wndsize"),
            setmtu: function!(c"ikcp_setmtu"),
            send: function!(c"ikcp_send"),
            recv: function!(c"ikcp_recv"),
            peeksize: function!(c"ikcp_peeksize"),
            input: function!(c"ikcp_input"),
            update: function!(c"ikcp_update"),
            flush: function!(c"ikcp_flush"),
            check: function!(c"ikcp_check"),
            waitsnd: function!(c"ikcp_waitsnd"),
            set_output: |block, emit| {
                // SAFETY: the caller has a block of this reference.
                unsafe { (*block.cast::<Block2015>()).output = emit }
            },
            of_2015: true,
        })
    }

    /// Whether it is the source of 2015.
    #[must_use]
    pub const fn is_of_2015(&self) -> bool {
        self.of_2015
    }
}

/// The block as it was in 2015, for the one field that nothing else sets.
#[repr(C)]
struct Block2015 {
    before_the_queues: [u32; 33],
    queues: [IQUEUEHEAD; 4],
    acknowledgements: *mut u32,
    acknowledgement_counts: [u32; 2],
    user: *mut c_void,
    buffer: *mut c_char,
    fast_resend: c_int,
    no_congestion_window: c_int,
    log_mask: c_int,
    output: Emit,
}

const _: () = {
    // What both have before the first field that only one has lies alike.
    assert!(mem::offset_of!(Block2015, queues) == mem::offset_of!(IKCPCB, snd_queue));
    assert!(mem::offset_of!(Block2015, user) == mem::offset_of!(IKCPCB, user));
    assert!(mem::offset_of!(Block2015, fast_resend) == mem::offset_of!(IKCPCB, fastresend));
};
