/* message */
#include "manager.h"
