/* Scripts. */
#include "script.h"
