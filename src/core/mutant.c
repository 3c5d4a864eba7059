/* SPDX-License-Identifier: Apache-2.0 */
/* The planted bug that is switched on; only in builds with -Dmutants=true. See mutant.h. */
#include "core/mutant.h"

enum mutant mutant_on;
