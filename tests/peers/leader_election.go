// SPDX-License-Identifier: Apache-2.0

// Leader election as the programs of others do it: client-go's own, on a Lease. It stands for them
// in tests that put us beside them on one Lease. While it leads it writes a line into a shared file
// every few milliseconds: its name and the time in milliseconds. It exits when it no longer leads, or
// when it was asked to stop (SIGTERM), which releases the Lease.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, "leader_election:", err)
	os.Exit(1)
}

// Writes one whole line for each beat, so that lines of several processes do not mix.
func beat(ctx context.Context, path string, name string) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		fail(err)
	}
	defer file.Close()
	for ctx.Err() == nil {
		fmt.Fprintf(file, "%s %d\n", name, time.Now().UnixNano()/1e6)
		time.Sleep(5 * time.Millisecond)
	}
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	namespace := flag.String("namespace", "default", "of the Lease")
	lease := flag.String("lease", "", "name of the Lease")
	name := flag.String("name", "", "our identity")
	beats := flag.String("beats", "", "file for a line per beat while we lead")
	duration := flag.Duration("duration", 15*time.Second, "of the Lease")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		fail(err)
	}
	config.Timeout = *duration / 3
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		fail(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: *namespace, Name: *lease},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: *name},
		},
		ReleaseOnCancel: true,
		LeaseDuration:   *duration,
		RenewDeadline:   *duration * 2 / 3,
		RetryPeriod:     *duration / 8,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { beat(ctx, *beats, *name) },
			OnStoppedLeading: func() {},
		},
	})
}
