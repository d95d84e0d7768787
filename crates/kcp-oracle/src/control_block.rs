//! The reference's control block and functions, by hand.

use std::ffi::{c_long, c_void};

/// `struct IQUEUEHEAD`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct QueueHead {
    next: *mut QueueHead,
    previous: *mut QueueHead,
}

/// `ikcpcb`, field for field as in `ikcp.h`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ControlBlock {
    conv: u32,
    mtu: u32,
    mss: u32,
    pub(crate) state: u32,
    pub(crate) snd_una: u32,
    pub(crate) snd_nxt: u32,
    pub(crate) rcv_nxt: u32,
    ts_recent: u32,
    ts_lastack: u32,
    pub(crate) ssthresh: u32,
    rx_rttval: i32,
    pub(crate) rx_srtt: i32,
    pub(crate) rx_rto: i32,
    pub(crate) rx_minrto: i32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rmt_wnd: u32,
    pub(crate) cwnd: u32,
    probe: u32,
    pub(crate) current: u32,
    pub(crate) interval: u32,
    ts_flush: u32,
    xmit: u32,
    nrcv_buf: u32,
    nsnd_buf: u32,
    nrcv_que: u32,
    nsnd_que: u32,
    nodelay: u32,
    updated: u32,
    ts_probe: u32,
    probe_wait: u32,
    pub(crate) dead_link: u32,
    pub(crate) incr: u32,
    snd_queue: QueueHead,
    rcv_queue: QueueHead,
    snd_buf: QueueHead,
    rcv_buf: QueueHead,
    acklist: *mut u32,
    ackcount: u32,
    ackblock: u32,
    pub(crate) user: *mut c_void,
    buffer: *mut u8,
    pub(crate) fastresend: i32,
    pub(crate) fastlimit: i32,
    pub(crate) nocwnd: i32,
    pub(crate) stream: i32,
    logmask: i32,
    output: *mut c_void,
    writelog: *mut c_void,
}

/// The type of the output function.
pub(crate) type Emit = extern "C" fn(*const u8, i32, *mut ControlBlock, *mut c_void) -> i32;

unsafe extern "C" {
    pub(crate) fn ikcp_create(conv: u32, user: *mut c_void) -> *mut ControlBlock;
    pub(crate) fn ikcp_release(kcp: *mut ControlBlock);
    pub(crate) fn ikcp_setoutput(kcp: *mut ControlBlock, output: Emit);
    pub(crate) fn ikcp_recv(kcp: *mut ControlBlock, buffer: *mut u8, len: i32) -> i32;
    pub(crate) fn ikcp_send(kcp: *mut ControlBlock, buffer: *const u8, len: i32) -> i32;
    pub(crate) fn ikcp_update(kcp: *mut ControlBlock, current: u32);
    pub(crate) fn ikcp_check(kcp: *const ControlBlock, current: u32) -> u32;
    pub(crate) fn ikcp_input(kcp: *mut ControlBlock, data: *const u8, size: c_long) -> i32;
    pub(crate) fn ikcp_flush(kcp: *mut ControlBlock);
    pub(crate) fn ikcp_peeksize(kcp: *const ControlBlock) -> i32;
    pub(crate) fn ikcp_setmtu(kcp: *mut ControlBlock, mtu: i32) -> i32;
    pub(crate) fn ikcp_wndsize(kcp: *mut ControlBlock, sndwnd: i32, rcvwnd: i32) -> i32;
    pub(crate) fn ikcp_waitsnd(kcp: *const ControlBlock) -> i32;
    pub(crate) fn ikcp_nodelay(
        kcp: *mut ControlBlock,
        nodelay: i32,
        interval: i32,
        resend: i32,
        nc: i32,
    ) -> i32;
}
