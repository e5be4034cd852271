/* result */
#include "manager.h"
