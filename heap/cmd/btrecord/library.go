//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lwsbt/lwsbt/device"
	"github.com/lwsbt/lwsbt/heap/record"
	"github.com/lwsbt/lwsbt/internal/cli"
)

// libraryName is the file that is preloaded.
const libraryName = "liblwsbt.so"

// cflags build the library. The stack walk needs the library's frame pointers and unwind
// tables; access to thread-local data must need no function call.
var cflags = strings.Fields("-std=gnu99 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec " +
	"-fno-omit-frame-pointer -fasynchronous-unwind-tables -DLWSBT_IN_CODE=lwsbt_in_code -Wall -Wextra")

// ldflags keep the library from loading another one for the unwinder.
var ldflags = strings.Fields("-static-libgcc -Wl,-z,now -Wl,--eh-frame-hdr -ldl -lpthread")

// captureSources are the files of src/ that the library needs: backends of other machines
// compile to nothing.
var captureSources = []string{"capture_mips.c", "capture_arm.c", "capture_thumb.c", "capture_riscv.c",
	"capture_ppc.c", "capture_s390x.c", "capture_functions.c"}

func libraryCommand() *cobra.Command {
	var cc, output string
	c := &cobra.Command{
		Use:   "library [flags]",
		Short: "build the library for a machine, such as a router",
		Long: `
library builds the preloaded library with a C compiler, for the machine and the
C library (glibc or musl) of the compiler. btrecord itself is a static Go
program, so a router needs only this library and btrecord:

  GOARCH=mips GOMIPS=softfloat CGO_ENABLED=0 go build ./heap/cmd/btrecord
  router# btrecord --library liblwsbt.so -- app`,
		Example: `
btrecord library --cc mips-linux-gnu-gcc -o liblwsbt.so
btrecord library --cc 'musl-gcc -Os' -o liblwsbt.so`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := build(cc, output); err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "btrecord: built %s\n", output)
			return nil
		},
	}
	c.Flags().StringVar(&cc, "cc", "cc", "C compiler `CC`, and its options")
	c.Flags().StringVarP(&output, "output", "o", libraryName, "write to `FILE`")
	return c
}

// build compiles the library to output. Options may follow the compiler in cc.
func build(cc, output string) error {
	command := strings.Fields(cc)
	if len(command) == 0 {
		return cli.BadArgsf("expected a C compiler")
	}
	if err := canReplace(output); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lwsbt")
	if err != nil {
		return cli.Failedf("%w", err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.CopyFS(dir, device.Sources), os.CopyFS(dir, record.Preload)); err != nil {
		return cli.Failedf("%w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "preload", "*.c"))
	if err != nil {
		return err
	}
	for _, f := range captureSources {
		files = append(files, filepath.Join(dir, "src", f))
	}
	// Write a temporary file and rename it, because a library in use must not change.
	temp := fmt.Sprintf("%s.%d.tmp", output, os.Getpid())
	defer os.Remove(temp)
	args := slices.Concat(command[1:], cflags,
		[]string{"-I" + filepath.Join(dir, "include"), "-I" + filepath.Join(dir, "src"), "-I" + filepath.Join(dir, "preload"), "-o", temp}, files, ldflags)
	var said bytes.Buffer
	ctx, stop := cli.Interruptible(context.Background()) // the directory is removed even after an interrupt
	defer stop()
	run := exec.CommandContext(ctx, command[0], args...)
	run.Stdout, run.Stderr = &said, &said
	// A compiler runs other programs, which have temporary files. Run waits until all of
	// them have closed standard error.
	run.Env = append(os.Environ(), "TMPDIR="+dir)
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	if err := run.Run(); err != nil {
		text := strings.TrimSpace(strings.ReplaceAll(said.String(), dir+string(filepath.Separator), ""))
		for line := range strings.Lines(text) { // find the first error
			if strings.Contains(line, "error") {
				return cli.Failedf("cannot build the library with %s: %s", cc, strings.TrimSpace(line))
			}
		}
		return cli.Failedf("cannot build the library with %s: %w", cc, err)
	}
	if err := os.Rename(temp, output); err != nil {
		return cli.Failedf("%w", err)
	}
	return nil
}

// canReplace returns an error if no file can be created at path. The compiler's message would
// name the temporary file.
func canReplace(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return cli.Usagef("%s: is not a regular file, expected a file to write", path)
	case err == nil:
		return nil
	}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return cli.Failedf("%w", err)
	}
	return nil
}

// cachedLibrary returns the library built by cc, from the user's cache if it was
// built before from the same sources by the same compiler.
func cachedLibrary(cc string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, cc, cflags, ldflags)
	command := strings.Fields(cc)
	version, err := exec.Command(command[0], "--version").Output()
	if err != nil {
		return "", cli.Failedf("no C compiler to build the library: %s: %w (see --cc, and btrecord library)", cc, err)
	}
	hash.Write(version)
	sources := tar.NewWriter(hash)
	if err := errors.Join(sources.AddFS(device.Sources), sources.AddFS(record.Preload), sources.Close()); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = filepath.Join(os.TempDir(), fmt.Sprintf("lwsbt-%d", os.Getuid()))
	}
	dir := filepath.Join(cache, "lwsbt", fmt.Sprintf("%x", hash.Sum(nil)[:8]))
	path := filepath.Join(dir, libraryName)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", cli.Failedf("%w", err)
	}
	return path, build(cc, path)
}
