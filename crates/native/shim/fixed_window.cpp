#include "fixed_window.h"

#include <string.h>
#include <time.h>

#include <udt/packet.h>

// The library keeps its packets' functions to itself, though its interface has rate
// controls send packets (CCC::sendCustomMsg). These two are what that takes, after
// the library's header: names for the words of a header, and a header and data that
// are sent in one call.
CPacket::CPacket():
m_iSeqNo(reinterpret_cast<int32_t&>(m_nHeader[0])),
m_iMsgNo(reinterpret_cast<int32_t&>(m_nHeader[1])),
m_iTimeStamp(reinterpret_cast<int32_t&>(m_nHeader[2])),
m_iID(reinterpret_cast<int32_t&>(m_nHeader[3])),
m_pcData(reinterpret_cast<char*&>(m_PacketVector[1].iov_base)),
__pad(0)
{
   memset(m_nHeader, 0, sizeof m_nHeader);
   m_PacketVector[0].iov_base = m_nHeader;
   m_PacketVector[0].iov_len = sizeof m_nHeader;
   m_PacketVector[1].iov_base = NULL;
   m_PacketVector[1].iov_len = 0;
}

CPacket::~CPacket()
{
}

void CPacket::setLength(int length)
{
   m_PacketVector[1].iov_len = length;
}

namespace
{

// A control packet, and a loss report among them: draft-gg-udt-03, section 3.2.
const uint32_t LOSS_REPORT = uint32_t(1) << 31 | uint32_t(3) << 16;

// A round trip is waited for, and half of one for what varies, but not less than this.
const uint64_t LEAST_VARIATION_US = 10000;

uint64_t now_us()
{
   timespec t;
   clock_gettime(CLOCK_MONOTONIC, &t);
   return uint64_t(t.tv_sec) * 1000000 + uint64_t(t.tv_nsec) / 1000;
}

}  // namespace

FixedWindow::FixedWindow(const FixedWindowSettings& settings):
m_settings(settings),
m_reports()
{
}

void FixedWindow::init()
{
   m_dCWndSize = m_settings.window_packets;
   // Microseconds between packets; UDT itself begins with one.
   m_dPktSndPeriod = 1;
   setACKTimer(m_iSYNInterval);
   // With a timeout of its own UDT asks the peer for a sign of life whenever it
   // is over, and answers to the peer's asking put it off: two ends with equal
   // timeouts can keep each other from ever sending again.
   if (m_settings.timeout_us > 0)
      setRTO(m_settings.timeout_us);
   // Both ends begin with the same number, which nothing has been sent with yet.
   m_reports.begin(m_iSndCurrSeqNo);
}

void FixedWindow::onACK(int32_t)
{
   if (m_settings.repeats_reports)
      report(now_us());
}

void FixedWindow::onPktReceived(const CPacket* packet)
{
   if (!m_settings.repeats_reports)
      return;
   uint64_t now = now_us();
   m_reports.received(packet->m_iSeqNo, now);
   report(now);
}

void FixedWindow::report(uint64_t now)
{
   uint64_t round_trip = m_iRTT > 0 ? uint64_t(m_iRTT) : 0;
   uint64_t varies = round_trip / 2 > LEAST_VARIATION_US ? round_trip / 2 : LEAST_VARIATION_US;
   int32_t numbers[LossReports::LONGEST];
   int count = m_reports.due(now, round_trip + varies, numbers);
   if (0 == count)
      return;
   CPacket packet;
   packet.m_iSeqNo = int32_t(LOSS_REPORT);
   packet.m_pcData = reinterpret_cast<char*>(numbers);
   packet.setLength(count * int(sizeof *numbers));
   sendCustomMsg(packet);
}

FixedWindowFactory::FixedWindowFactory(const FixedWindowSettings& settings):
m_settings(settings)
{
}

CCC* FixedWindowFactory::create()
{
   return new FixedWindow(m_settings);
}

CCCVirtualFactory* FixedWindowFactory::clone()
{
   return new FixedWindowFactory(m_settings);
}
