#include "rate_control_4_10.h"

#include <math.h>
#include <time.h>

namespace
{

// Sequence numbers have 31 bits and wrap (draft-gg-udt-03, section 3.1): the
// way from one to another is the shorter one.
int32_t distance(int32_t from, int32_t to)
{
   const uint32_t range = uint32_t(1) << 31;
   uint32_t ahead = (uint32_t(to) - uint32_t(from)) % range;
   return ahead < range / 2 ? int32_t(ahead) : -int32_t(range - ahead);
}

uint64_t now_us()
{
   timespec t;
   clock_gettime(CLOCK_MONOTONIC, &t);
   return uint64_t(t.tv_sec) * 1000000 + uint64_t(t.tv_nsec) / 1000;
}

// A number from 0 to 1 that the sequence number decides (splitmix64), so that
// flows that lose together do not slow down together.
double scattered(int32_t sequence)
{
   uint64_t x = uint64_t(uint32_t(sequence)) + 0x9e3779b97f4a7c15ULL;
   x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
   x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
   return double((x ^ (x >> 31)) >> 11) / double(uint64_t(1) << 53);
}

// At most so many decreases in a congestion period: 0.875 to the fifth is about
// a half.
const int DECREASES_AT_MOST = 5;

}  // namespace

void RateControl410::init()
{
   setACKTimer(m_iSYNInterval);
   m_increased_us = now_us();
   m_acknowledged = m_iSndCurrSeqNo;
   m_decreased_at = m_iSndCurrSeqNo - 1;
   m_dCWndSize = 16;
   m_dPktSndPeriod = 1;
}

bool RateControl410::end_slow_start()
{
   m_slow_start = false;
   if (m_iRcvRate <= 0)
      return false;
   m_dPktSndPeriod = 1e6 / m_iRcvRate;
   return true;
}

void RateControl410::onACK(int32_t acknowledged)
{
   uint64_t now = now_us();
   if (now - m_increased_us < uint64_t(m_iSYNInterval))
      return;
   m_increased_us = now;

   if (m_slow_start)
   {
      m_dCWndSize += distance(m_acknowledged, acknowledged) + 1;
      m_acknowledged = acknowledged;
      if (m_dCWndSize <= m_dMaxCWndSize)
         return;
      if (!end_slow_start())
         m_dPktSndPeriod = (m_iRTT + m_iSYNInterval) / m_dCWndSize;
   }
   else
      m_dCWndSize = m_iRcvRate / 1e6 * (m_iRTT + m_iSYNInterval) + 16;

   if (m_lost_since_increase)
   {
      m_lost_since_increase = false;
      return;
   }
   m_dPktSndPeriod = m_dPktSndPeriod * m_iSYNInterval / (m_dPktSndPeriod * increase() + m_iSYNInterval);
}

double RateControl410::increase() const
{
   const double least = 1.0 / m_iMSS;
   // Packets each second that the path would bear beyond the rate there is.
   double unused = trunc(m_iBandwidth - 1e6 / m_dPktSndPeriod);
   if (m_dPktSndPeriod > m_period_before_decrease)
      unused = fmin(unused, m_iBandwidth / 9);
   if (unused <= 0)
      return least;
   return fmax(pow(10, ceil(log10(unused * m_iMSS * 8))) * 1.5e-6 / m_iMSS, least);
}

void RateControl410::decrease()
{
   m_dPktSndPeriod = ceil(m_dPktSndPeriod * 1.125);
   m_decreased_at = m_iSndCurrSeqNo;
}

void RateControl410::onLoss(const int32_t* losses, int)
{
   if (m_slow_start)
   {
      if (end_slow_start())
         return;
      m_dPktSndPeriod = m_dCWndSize / (m_iRTT + m_iSYNInterval);
   }
   m_lost_since_increase = true;

   // The highest bit says that a range of numbers begins.
   int32_t first_lost = losses[0] & 0x7fffffff;
   if (distance(m_decreased_at, first_lost) > 0)
   {
      m_period_before_decrease = m_dPktSndPeriod;
      decrease();
      m_usual_loss_reports = int(ceil(m_usual_loss_reports * 0.875 + m_loss_reports * 0.125));
      m_loss_reports = 1;
      m_decreases = 1;
      m_reports_per_decrease = int(fmax(1, ceil(m_usual_loss_reports * scattered(m_decreased_at))));
   }
   else if (m_decreases < DECREASES_AT_MOST)
   {
      ++ m_decreases;
      if (0 == ++ m_loss_reports % m_reports_per_decrease)
         decrease();
   }
}

void RateControl410::onTimeout()
{
   if (m_slow_start && !end_slow_start())
      m_dPktSndPeriod = m_dCWndSize / (m_iRTT + m_iSYNInterval);
}
