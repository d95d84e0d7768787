#include "fixed_window.h"

FixedWindow::FixedWindow(int window_packets, int timeout_us):
m_window_packets(window_packets),
m_timeout_us(timeout_us)
{
}

void FixedWindow::init()
{
   m_dCWndSize = m_window_packets;
   // Microseconds between packets; UDT itself begins with one.
   m_dPktSndPeriod = 1;
   setACKTimer(m_iSYNInterval);
   // With a timeout of its own UDT asks the peer for a sign of life whenever it
   // is over, and answers to the peer's asking put it off: two ends with equal
   // timeouts can keep each other from ever sending again.
   if (m_timeout_us > 0)
      setRTO(m_timeout_us);
}

FixedWindowFactory::FixedWindowFactory(int window_packets, int timeout_us):
m_window_packets(window_packets),
m_timeout_us(timeout_us)
{
}

CCC* FixedWindowFactory::create()
{
   return new FixedWindow(m_window_packets, m_timeout_us);
}

CCCVirtualFactory* FixedWindowFactory::clone()
{
   return new FixedWindowFactory(m_window_packets, m_timeout_us);
}
