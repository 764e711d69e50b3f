#!/usr/bin/env python3
"""usage: compare.py FIRST END OLD NEW. Writes the fleets of worlds.py with the seeds from FIRST to before END, asks two btfleet binaries what leaks,
and prints the table of FIGURES.md."""
import collections, json, os, shutil, statistics, subprocess, sys, tempfile

worlds = ('base heaps onoff onofffast queue nightly weekly cron staged drift bursts sessions refill mended two watchdog hours gaps plateau').split()


def ask(binary, *arguments):
    return subprocess.run([binary, *arguments], capture_output=True, text=True)


def answer(binary, logs, truth):
    """what a binary says of the logs of a fleet"""
    store, a = logs + '-store', collections.defaultdict(list)
    ask(binary, 'ingest', '--store', store, logs)
    for name in sorted(truth['builds']):
        planted = {tuple(x['stack']): x for x in truth['leak'] if x['build'] == name}
        a['planted'] += planted
        p = ask(binary, 'leaks', '--store', store, '--build', truth['builds'][name], '--json', '-n', '0')
        if not p.stdout:
            continue
        found = json.loads(p.stdout)
        a['builds'].append(name)
        for r in found['rows'] or []:
            if r['verdict'] in ('leak', 'probably'):
                x = planted.get(tuple(f['address'] for f in r['stack']))
                a['found' if x else 'false'].append(r)
                if x and r['rate']:
                    a['rate'].append(abs(r['rate'] / statistics.median(x['devices'].values()) - 1))
        hours = (found['exhaustion'] or {}).get('hours')
        if len(planted) == 1 and (true := list(planted.values())[0].get('hours')):
            a['deadline'].append(abs(hours / true - 1) if hours else 1)
        elif hours and not len(planted) == 2:
            a['wrong'].append(hours)  # a deadline where there is none
    shutil.rmtree(store, ignore_errors=True)
    return a


def cells(a):
    most = lambda name: '%.1f%%' % (100 * max(a[name])) if a[name] else '-'
    return '%d/%d | %.2f | %s | %s' % (len(a['found']), len(a['planted']), len(a['false']) / max(1, len(a['builds'])), most('rate'),
                                         most('deadline') + (', %d wrong' % len(a['wrong']) if a['wrong'] else ''))


def main(first, end, *binaries):
    print('| fleet | found | false per build | rate | deadline | found | false per build | rate | deadline |\n| --- |' + ' ---: |' * 8)
    for world in worlds:
        sums = [collections.defaultdict(list) for _ in binaries]
        for seed in range(int(first), int(end)):
            with tempfile.TemporaryDirectory() as d:
                logs = d + '/logs'
                subprocess.run([sys.executable, os.path.dirname(os.path.abspath(__file__)) + '/worlds.py', logs, world, str(seed)], check=True)
                for binary, total in zip(binaries, sums):
                    for name, list_ in answer(binary, logs, json.load(open(logs + '.json'))).items():
                        total[name] += list_
        print('| %s | %s |' % (world, ' | '.join(map(cells, sums))), flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
