// A rate control of ours for UDT.

#ifndef LAGOMETER_UDT_FIXED_WINDOW_H
#define LAGOMETER_UDT_FIXED_WINDOW_H

#include "loss_reports.h"

#include <udt/ccc.h>

// How a fixed window is kept.
struct FixedWindowSettings
{
   int window_packets;
   // The silence after which everything unacknowledged is sent again; UDT's own
   // where it is nought.
   int timeout_us;
   // Whether losses are reported again until what was lost has come.
   bool repeats_reports;
};

// No rate control: a fixed window, packets as they come, a timeout of one's own if
// that is asked for, and loss reports that are repeated. What an application with a
// small steady rate would ask for.
class FixedWindow: public CCC
{
public:
   explicit FixedWindow(const FixedWindowSettings& settings);

   virtual void init();
   virtual void onACK(int32_t acknowledged);
   virtual void onPktReceived(const CPacket* packet);

private:
   // Reports what is still missing, where it is time.
   void report(uint64_t now_us);

   const FixedWindowSettings m_settings;
   LossReports m_reports;
};

class FixedWindowFactory: public CCCVirtualFactory
{
public:
   explicit FixedWindowFactory(const FixedWindowSettings& settings);

   virtual CCC* create();
   virtual CCCVirtualFactory* clone();

private:
   const FixedWindowSettings m_settings;
};

#endif
