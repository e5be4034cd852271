/* names */
#include "manager.h"
