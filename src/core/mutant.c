/* SPDX-License-Identifier: Apache-2.0 */
/* Which planted bug is on; only in builds with -Dmutants=true. See mutant.h. */
#include "core/mutant.h"

enum mutant mutant_on;
