// UDT's rate control as release 4.10 had it.

#ifndef LAGOMETER_UDT_RATE_CONTROL_4_10_H
#define LAGOMETER_UDT_RATE_CONTROL_4_10_H

#include <stdint.h>

#include <udt/ccc.h>

// UDT's native congestion control after draft-gg-udt-03, section 5.1, in the
// shape release 4.10 gave it. Release 4.11 differs in one constant: its rate
// grows by 0.01 packets each 10 ms at least, that of 4.10 by one byte's share of
// a packet (1 / MSS), a fifteenth as much.
class RateControl410: public CCC
{
public:
   virtual void init();
   virtual void onACK(int32_t acknowledged);
   virtual void onLoss(const int32_t* losses, int count);
   virtual void onTimeout();

private:
   // Ends slow start with the peer's receiving rate; false where none is known.
   bool end_slow_start();
   // Packets that the next 10 ms may carry beyond what these carry.
   double increase() const;
   void decrease();

   bool m_slow_start = true;
   bool m_lost_since_increase = false;
   uint64_t m_increased_us = 0;
   int32_t m_acknowledged = 0;
   // The newest packet sent when the rate was last decreased.
   int32_t m_decreased_at = 0;
   // Microseconds between packets before the first decrease of the period.
   double m_period_before_decrease = 1;
   // Within the congestion period, which a loss after m_decreased_at begins:
   int m_loss_reports = 0;
   int m_decreases = 0;
   int m_reports_per_decrease = 1;
   // A moving average of loss reports in a congestion period.
   int m_usual_loss_reports = 0;
};

#endif
