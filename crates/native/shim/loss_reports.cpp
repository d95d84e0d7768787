#include "loss_reports.h"

#include <stddef.h>

namespace
{

// What is remembered at most; more is left to UDT alone.
const int MISSING_AT_MOST = 1024;

// How often a loss is reported at most: a sender that gave a message up, or is gone, is
// not asked for ever.
const int REPORTS_AT_MOST = 64;

const uint32_t RANGE = uint32_t(1) << 31;

int32_t after(int32_t sequence)
{
   return int32_t((uint32_t(sequence) + 1) % RANGE);
}

// The way from one number to another, the shorter one.
int32_t distance(int32_t from, int32_t to)
{
   uint32_t ahead = (uint32_t(to) - uint32_t(from)) % RANGE;
   return ahead < RANGE / 2 ? int32_t(ahead) : -int32_t(RANGE - ahead);
}

}  // namespace

void LossReports::begin(int32_t newest)
{
   m_newest = newest;
   m_missing.clear();
}

void LossReports::received(int32_t sequence, uint64_t now_us)
{
   int32_t ahead = distance(m_newest, sequence);
   if (ahead > 0)
   {
      // No window is as wide as this: not a packet of this connection.
      if (ahead > MISSING_AT_MOST)
         return;
      for (int32_t missing = after(m_newest); missing != sequence; missing = after(missing))
         if (m_missing.size() < size_t(MISSING_AT_MOST))
            m_missing.push_back(Missing{missing, now_us, 1});
      m_newest = sequence;
      return;
   }
   for (size_t at = 0; at < m_missing.size(); ++ at)
      if (m_missing[at].sequence == sequence)
      {
         m_missing.erase(m_missing.begin() + at);
         return;
      }
}

int LossReports::due(uint64_t now_us, uint64_t interval_us, int32_t* report)
{
   int written = 0;
   for (size_t at = 0; at < m_missing.size() && written < LONGEST;)
   {
      Missing& missing = m_missing[at];
      if (now_us - missing.reported_us < interval_us)
      {
         ++ at;
         continue;
      }
      if (missing.reports >= REPORTS_AT_MOST)
      {
         m_missing.erase(m_missing.begin() + at);
         continue;
      }
      missing.reported_us = now_us;
      ++ missing.reports;
      report[written ++] = missing.sequence;
      ++ at;
   }
   return written;
}
