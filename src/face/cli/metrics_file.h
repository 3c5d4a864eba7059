/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --metrics-file: a Prometheus text file to which each command adds its counters and histograms,
 * for the textfile collector of node_exporter. The client of the context counts by itself; the
 * functions below count what no client sees. main() writes the file when the command has ended.
 */
#ifndef LEASEHOLD_FACE_CLI_METRICS_FILE_H
#define LEASEHOLD_FACE_CLI_METRICS_FILE_H

#include "face/cli/cli.h"
#include "leasehold_workload.h"

/* An acquisition that no client has counted, and its end: a store that could not be opened, or a
 * supervisor that died. */
void metrics_file_count(bool granted, enum lh_outcome outcome);
void metrics_file_add_workloads(struct lh_workloads *workloads);

/* Adds everything to the file, if --metrics-file is given and there is anything. Waits at most 2 s
 * for other processes. A failure is one warning on stderr. A further call does nothing: main() ends
 * with one, and a command calls it before a report that must be the last line on stderr. */
void metrics_file_update(struct context *context);

#endif
