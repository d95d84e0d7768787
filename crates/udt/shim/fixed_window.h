// A rate control of ours for UDT.

#ifndef LAGOMETER_UDT_FIXED_WINDOW_H
#define LAGOMETER_UDT_FIXED_WINDOW_H

#include <udt/ccc.h>

// No rate control: a fixed window, packets as they come, and a timeout of one's
// own, or UDT's where that is nought. What an application with a small steady rate would ask for.
class FixedWindow: public CCC
{
public:
   FixedWindow(int window_packets, int timeout_us);

   virtual void init();

private:
   int m_window_packets;
   int m_timeout_us;
};

class FixedWindowFactory: public CCCVirtualFactory
{
public:
   FixedWindowFactory(int window_packets, int timeout_us);

   virtual CCC* create();
   virtual CCCVirtualFactory* clone();

private:
   int m_window_packets;
   int m_timeout_us;
};

#endif
