//go:build linux

package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/lwsbt/lwsbt/device"
	"github.com/lwsbt/lwsbt/internal/newfile"
)

// LibraryName is the name of the file that is preloaded.
const LibraryName = "liblwsbt.so"

// LibrarySymbol is a symbol of libraries that write this version of the layout.
var LibrarySymbol = fmt.Sprintf("lwsbt_ring_version_%d", ringVersion)

// cflags build the library. The stack walk needs the library's frame pointers and unwind
// tables; access to thread-local data must need no function call.
var cflags = strings.Fields("-std=gnu99 -O2 -g -fPIC -shared -fvisibility=hidden -ftls-model=initial-exec " +
	"-fno-omit-frame-pointer -fasynchronous-unwind-tables -D_FILE_OFFSET_BITS=64 -DLWSBT_IN_CODE=lwsbt_in_code -Wall -Wextra")

// ldflags keep the library from loading another one for the unwinder.
var ldflags = strings.Fields("-static-libgcc -Wl,-z,now -Wl,--eh-frame-hdr -ldl -lpthread")

// captureSources are the files of src/ that the library needs: backends of other machines
// compile to nothing.
var captureSources = []string{"capture_mips.c", "capture_arm.c", "capture_thumb.c", "capture_riscv.c",
	"capture_ppc.c", "capture_s390x.c", "capture_functions.c"}

// Build compiles the library to output. Options may follow the compiler in cc.
func Build(ctx context.Context, cc, output string) error {
	command := strings.Fields(cc)
	if len(command) == 0 {
		return fail(BadArgument, "expected a C compiler")
	}
	to, name, info, err := newfile.Target(output)
	if err != nil {
		return fail(Failed, "%w", err)
	}
	defer to.Close()
	if info != nil && !info.Mode().IsRegular() {
		return fail(Unusable, "%s: is not a regular file, expected a file to write", output)
	}
	dir, err := os.MkdirTemp("", "lwsbt")
	if err != nil {
		return fail(Failed, "%w", err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.CopyFS(dir, device.Sources), os.CopyFS(dir, Preload)); err != nil {
		return fail(Failed, "%w", err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "preload", "*.c"))
	if err != nil {
		return err
	}
	for _, f := range captureSources {
		files = append(files, filepath.Join(dir, "src", f))
	}
	temp := filepath.Join(dir, LibraryName)
	args := slices.Concat(command[1:], cflags,
		[]string{"-I" + filepath.Join(dir, "include"), "-I" + filepath.Join(dir, "src"), "-I" + filepath.Join(dir, "preload"), "-o", temp}, files, ldflags)
	var said bytes.Buffer
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
				return fail(Failed, "cannot build the library with %s: %s", cc, strings.TrimSpace(line))
			}
		}
		return fail(Failed, "cannot build the library with %s: %w", cc, err)
	}
	return replace(to, name, temp)
}

// replace replaces a file by a copy of another one. A library in use does not change.
func replace(to *newfile.Dir, name, from string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	f, temp, err := to.CreateFree(func(n int) string { return fmt.Sprintf(".%s.%d-%d.tmp", name, os.Getpid(), n) })
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err == nil {
		err = to.Rename(temp, name)
	}
	if err != nil {
		to.Remove(temp)
		return fail(Failed, "%w", err)
	}
	return nil
}

// cachedLibrary returns the library built by cc, from the user's cache if it was built before from
// the same sources by the same compiler. It does not run the compiler to find that out.
func cachedLibrary(ctx context.Context, cc string) (string, error) {
	command := strings.Fields(cc)
	if len(command) == 0 {
		return "", fail(BadArgument, "expected a C compiler")
	}
	compiler, err := exec.LookPath(command[0])
	if err != nil {
		return "", fail(Failed, "no C compiler to build the library: %w (see btrecord library)", err)
	}
	if real, err := filepath.EvalSymlinks(compiler); err == nil {
		compiler = real
	}
	info, err := os.Stat(compiler)
	if err != nil {
		return "", fail(Failed, "%w", err)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, cc, cflags, ldflags, compiler, info.Size(), info.ModTime().UnixNano())
	for _, sources := range []embed.FS{device.Sources, Preload} {
		fs.WalkDir(sources, ".", func(path string, _ fs.DirEntry, _ error) error {
			text, _ := sources.ReadFile(path) // none of a directory
			fmt.Fprintln(hash, path, len(text))
			hash.Write(text)
			return nil
		})
	}
	dir, err := cacheDir(fmt.Sprintf("%x", hash.Sum(nil)[:8]))
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, LibraryName)
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return path, nil
	}
	return path, Build(ctx, cc, path)
}

// cacheDir returns a directory of the user's, below the user's cache or, if that cannot be written,
// below the directory of temporary files. Nobody else can write there: programs load what is in it.
func cacheDir(name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err == nil {
		dir := filepath.Join(cache, "lwsbt", name)
		if err = os.MkdirAll(dir, 0o700); err == nil {
			if err = unix.Access(dir, unix.W_OK|unix.X_OK); err == nil {
				return dir, nil
			}
			if _, e := os.Stat(filepath.Join(dir, LibraryName)); e == nil {
				return dir, nil // built before
			}
		}
	}
	mine := filepath.Join(os.TempDir(), fmt.Sprintf("lwsbt-%d", os.Getuid()))
	e := os.Mkdir(mine, 0o700)
	if e == nil || errors.Is(e, fs.ErrExist) {
		var st unix.Stat_t
		e = unix.Lstat(mine, &st)
		if e == nil && (st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o022 != 0) {
			e = fmt.Errorf("%s: not a directory that only this user can write", mine)
		}
	}
	dir := filepath.Join(mine, name)
	if e == nil {
		e = os.MkdirAll(dir, 0o700)
	}
	if e != nil {
		return "", fail(Failed, "no directory to keep the library: %w, and %w; XDG_CACHE_HOME=DIR names another one", err, e)
	}
	return dir, nil
}
