/* lease */
#include "manager.h"
