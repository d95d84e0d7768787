/*
UDT's rate control with the smallest increase of release 4.10.

Copied from src/ccc.h and src/ccc.cpp, Copyright (c) 2001 - 2011, The Board of
Trustees of the University of Illinois, BSD licence: see ../LICENSE. Changed:
the class's name, and `min_inc`, which is 1 / MSS as it was before release 4.11.
*/

#ifndef LAGOMETER_UDT_RATE_CONTROL_4_10_H
#define LAGOMETER_UDT_RATE_CONTROL_4_10_H

#include "ccc.h"

class RateControl410: public CCC
{
public:
   RateControl410();

   virtual void init();
   virtual void onACK(int32_t);
   virtual void onLoss(const int32_t*, int);
   virtual void onTimeout();

private:
   int m_iRCInterval;			// UDT Rate control interval
   uint64_t m_LastRCTime;		// last rate increase time
   bool m_bSlowStart;			// if in slow start phase
   int32_t m_iLastAck;			// last ACKed seq no
   bool m_bLoss;			// if loss happened since last rate increase
   int32_t m_iLastDecSeq;		// max pkt seq no sent out when last decrease happened
   double m_dLastDecPeriod;		// value of pktsndperiod when last decrease happened
   int m_iNAKCount;                     // NAK counter
   int m_iDecRandom;                    // random threshold on decrease by number of loss events
   int m_iAvgNAKNum;                    // average number of NAKs per congestion
   int m_iDecCount;			// number of decreases in a congestion epoch
};

#endif
