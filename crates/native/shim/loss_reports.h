// Loss reports that are repeated until what they ask for has come.

#ifndef LAGOMETER_UDT_LOSS_REPORTS_H
#define LAGOMETER_UDT_LOSS_REPORTS_H

#include <stdint.h>

#include <vector>

// What a receiver misses, and when it is to be reported again.
//
// UDT 4.11 reports a loss once, when it sees the gap. If the report is lost, or the
// packet that is sent upon it, only the sender's timer helps, and everything that the
// sender receives puts it off by 300 ms: as long as the other direction is lively, the gap
// stays. This keeps the gaps and says when to report them again; whoever uses it
// sends the reports. Sequence numbers have 31 bits and wrap
// (draft-gg-udt-03, section 3.1).
class LossReports
{
public:
   // Numbers that one report holds at most: a packet of 576 B holds twice that.
   static const int LONGEST = 64;

   // Begins: the packets after `newest` are to come.
   void begin(int32_t newest);

   // A packet has come at `now_us`. What is missing before it UDT itself reports now.
   void received(int32_t sequence, uint64_t now_us);

   // Writes into `report` (LONGEST numbers) what is missing and was not reported in the
   // last `interval_us`, as a loss report has it, counts it as reported, and says how many
   // numbers were written.
   int due(uint64_t now_us, uint64_t interval_us, int32_t* report);

private:
   struct Missing
   {
      int32_t sequence;
      uint64_t reported_us;
      int reports;
   };

   int32_t m_newest = 0;
   // In order.
   std::vector<Missing> m_missing;
};

#endif
