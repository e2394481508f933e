#pragma once
// In front of libstdc++'s header of this name, which others of its headers include first. It was made for glibc, and
// says what glibc has. musl has none of this.
#define __GLIBC_PREREQ(major, minor) 0
#define __locale_t locale_t
#include_next <bits/c++config.h>
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK

// Classes of characters by bits, which no function of musl takes. They are declared for std::ctype alone.
enum : unsigned short {
  _ISupper = 1 << 0,
  _ISlower = 1 << 1,
  _ISalpha = 1 << 2,
  _ISdigit = 1 << 3,
  _ISxdigit = 1 << 4,
  _ISspace = 1 << 5,
  _ISprint = 1 << 6,
  _ISblank = 1 << 7,
  _IScntrl = 1 << 8,
  _ISpunct = 1 << 9,
};
