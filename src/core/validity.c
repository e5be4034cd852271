/* Integer time arithmetic of a lease. */
#include "core/validity.h"
