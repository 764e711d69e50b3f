#!/usr/bin/env python3
"""usage: worlds.py DIR WORLD [SEED]. Logs of a fleet in WORLD to DIR/DEVICE.log, the truth to DIR.json. Written from SPEC.md and spec/recordings.md."""
import json, math, os, random, sys
world, seed = sys.argv[2], int((sys.argv[3:]+['1'])[0])
d = sys.argv[1]; os.makedirs(d, exist_ok=True)
R = random.Random(hash_ := sum(ord(c)*(i+7) for i,c in enumerate(world))*7919+seed)
H = 3600
EPOCH = 1795000000
NP = 24
paths = [[0x08004000+4*R.randrange(40000) for _ in range(R.randrange(3,7))] for _ in range(NP)]
leaks = [[0x0806aaa0+0x100*k, 0x0806bbb0, 0x0800c100] for k in range(30)]
bid = {v: '%040x' % R.getrandbits(160) for v in ('A','B','C')}
truth = {'world': world, 'builds': bid, 'leak': {}, 'note': ''}
days, step, n = 10, 6, 120
out = {}     # device -> list of lines
T = {}       # (build, leak index) -> {device: rate bytes/h true at the end}
free_end = {}  # (build, device) -> (free, sum of rates)
begins = {}

class Dev:
    def __init__(s, name, r):
        s.name=name; s.r=r; s.lines=[]; s.num=0; s.scale=math.exp(r.gauss(0,.25)); s.boot=None
        s.kind=[k%8 for k in range(NP)]; s.sz=[r.choice([32,48,96,200,400]) for _ in paths]; s.mx=[r.randrange(4,20) for _ in paths]; s.tau=[r.uniform(1,5) for _ in paths]; s.walk=[r.randrange(0,11) for _ in paths]
        s.clock=0; s.shift={}
    def start(s, t, b, fw=None, epoch=True):
        s.boot=t; s.num=0; s.b=b
        s.lines.append('~h#boot prog=fw w=32 build=%s dev=%s fw=v%s%s' % (bid[b], s.name, fw or b, (' epoch=%d'%int((EPOCH+t*H+s.clock)*1e6)) if epoch else ''))
    def dump(s, t, leak=(), load=1.0, ups=True, why='interval', loss=.005, heap=(('',512*1024),), partload=1.0, night=0, extra=()):
        r=s.r; up=t-s.boot; recs=[]
        for k,p in enumerate(paths):
            kd=s.kind[k]
            if kd==0: c=3
            elif kd==1: c=r.randrange(0,5)
            elif kd==2: c=int(s.mx[k]*(1-math.exp(-up/s.tau[k]))+r.random())           # warm-up
            elif kd==3: c=int(6*load*partload+3*math.sin(2*math.pi*t/24+k)+r.random())           # day cycle, load
            elif kd==4: s.walk[k]=max(0,min(10,s.walk[k]+r.choice([-1,0,1]))); c=s.walk[k]
            elif kd==5: c=int(10*load*partload+r.gauss(0,1.5)+.5)
            elif kd==6: c=int(2+up/ (23*1.0))%4                                       # flushed
            else: c=2 if r.random()<.9 else 6
            c=max(0,int(c)); recs += [(s.sz[k],s.addr(p))]*c
        if night: recs.append((int(night), s.addr(leaks[29])))
        held=0
        for i,(by,blk) in leak:
            c=int(by//blk)
            recs += [(blk,s.addr(leaks[i]))]*c
        recs += [(z,s.addr(p)) for z,p in extra]
        tot=sum(z for z,_ in recs)
        L=['~h#begin %d%s n=%d b=%d why=%s' % (s.num, ' t=%d'%int(up*H*1e6) if ups else '', len(recs), tot, why)]
        for nm,size in heap: L.append('~h#heap%s size=%d free=%d' % (' name='+nm if nm else '', size, max(0,size-tot if nm in('','main') else size-sum(by for _,(by,_) in leak))))
        s.free=max(0,heap[-1][1]-tot) if len(heap)==1 else None
        r.shuffle(recs)
        L += ['~b#size: %d, %s' % (z,' '.join('%#x'%a for a in p)) for z,p in recs if r.random()>loss]
        L.append('~h#end %d n=%d b=%d' % (s.num,len(recs),tot)); s.num+=1; s.lines += L
    def addr(s,p): return [a+s.shift.get(s.b,{}).get(a,0) for a in p] if s.b in s.shift else p
def leaks_of(b,i,dev,rate,begin=None):
    T.setdefault((b,i),{})[dev.name]=rate
    if begin is not None: begins.setdefault((b,i),{})[dev.name]=begin
def write(dv):
    with open('%s/%s.log'%(d,dv.name),'a') as f: f.write('\n'.join(dv.lines)+'\n')
def maybe_reboot(dv,t,p=.004):
    if dv.boot is None or dv.r.random()<p: dv.start(t,dv.b)

def std(n=120, days=10, step=6, share=.3, rate=200, blk=100, f=None, pre=None, reb=.004, builds='AB', leakb='B', dumpkw=None):
    """half of the devices run each build, B leaks on share"""
    for i in range(n):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b=builds[i%len(builds)]; dv.b=b
        has=b==leakb and r.random()<share; ph=r.random()*step
        if pre: pre(dv,i)
        dv.start(ph,b)
        for q in range(int(days*24/step)):
            t=ph+q*step
            if q and reb and r.random()<reb: dv.start(t,b)
            up=t-dv.boot
            by=[(0,(rate*up if f is None else f(dv,up,t),blk))] if has else []
            kw=dumpkw(dv,t) if dumpkw else {}
            dv.dump(t+.01,by,**kw)
        if has: leaks_of(b,0,dv,rate); free_end[(b,dv.name)]=(dv.free,rate)
        write(dv)

if world=='base': std()
elif world=='heaps':     # main heap 512 kB, dma heap of 64 kB: the leak is in dma
    std(n=80,days=10,share=.4,rate=60,blk=60,reb=0,dumpkw=lambda dv,t: dict(heap=(('main',512*1024),('dma',65536))))
    free_end.clear()
    for x,rt in T[('B',0)].items(): free_end[('B',x)]=(65536-60*10*24,60)
    truth['note']='deadline truth: dma heap, (65536-14400)/60 h = 852 h'
elif world in('onoff','onofffast'):     # switched off each night: boots at 07:00, off at 22:00; dumps each hour; B leaks 400 B/h on 30 %
    for i in range(60):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b='AB'[i%2]; dv.b=b; has=b=='B' and r.random()<.3
        for day in range(6):
            t0=day*24+7+r.random(); dv.start(t0,b)
            for q in range(14): dv.dump(t0+q+.01,[(0,((400 if world=='onoff' else 4000)*q,100))] if has else [])
        if has: leaks_of(b,0,dv,400 if world=='onoff' else 4000)
        write(dv)
elif world=='queue':     # MQTT queue grows while offline (1-3 days), then drains; 30 % of the devices are offline at the end
    def f(dv,up,t):
        if not hasattr(dv,'off'): dv.off=[(a:=dv.r.uniform(20,240),a+dv.r.uniform(20,60))]+([(240-dv.r.uniform(20,60),999)] if dv.r.random()<.3 else [])
        for a,b in dv.off:
            if a<=t<b: return 300*(t-a)
        return 0
    std(n=120,days=10,share=1,f=f,blk=300,leakb='B',reb=0); T.clear(); truth['note']='queue while offline: no leak (documented weakness)'
elif world=='weekend':   # no change, no leak. 120 devices run A from Monday 03:00; on Friday 03:00 half of them get B, the others A again (both boot). From then on (weekend) the load is 40 % higher on all. Truth: no path differs between the builds at the same time
    for i in range(120):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r)
        for b,t0,k in (('A',3,16),('AB'[i%2],99,10)):
            t0+=r.uniform(-.5,.5); dv.b=b; dv.start(t0,b); dv.walk=[r.randrange(0,11) for _ in paths]
            for q in range(1,k): t=t0+q*6+r.random(); dv.dump(t,load=1.4 if t>99 else 1.0)
        write(dv)
elif world=='rollout':   # as weekend, and B leaks 400 B/h on half of its devices
    for i in range(120):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); has=i%4==1
        for b,t0,k in (('A',3,16),('AB'[i%2],99,10)):
            t0+=r.uniform(-.5,.5); dv.b=b; dv.start(t0,b); dv.walk=[r.randrange(0,11) for _ in paths]
            for q in range(1,k): t=t0+q*6+r.random(); dv.dump(t,[(0,(400*q*6,100))] if b=='B' and has else [],load=1.4 if t>99 else 1.0)
        if has: leaks_of('B',0,dv,400)
        write(dv)
elif world=='nightly':   # no leak: all devices reboot at 03:00 (+-20 min) each night; hourly dumps; the load peaks at 20:00
    for i in range(80):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b='AB'[i%2]; dv.b=b
        for day in range(7):
            t0=day*24+3+r.uniform(-.33,.33); dv.start(t0,b)
            for q in range(23): dv.dump(t0+q+.05+r.random()*.1,load=1+.5*math.sin(2*math.pi*(t0+q-14)/24))
        write(dv)
elif world=='weekly':    # no leak: all devices reboot on Sunday at 03:00; 4 dumps a day; the load rises by 8 % a day from Monday to Sunday (weekend traffic)
    for i in range(80):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b='AB'[i%2]; dv.b=b
        for wk in range(3):
            t0=wk*168+3+r.uniform(-.33,.33); dv.start(t0,b)
            for q in range(27): dv.dump(t0+q*6+.05+r.random(),load=1+.3*math.sin(2*math.pi*((t0+q*6)-126)/168))
        write(dv)
elif world=='cron':      # no leak: a job holds 40 kB between 02:00 and 03:00; hourly dumps
    std(n=40,days=6,step=1,share=0,dumpkw=lambda dv,t: dict(night=40000 if 2<=t%24<3 else 0))
elif world=='staged':    # devices get B one after the other on days 2 to 8; B leaks 150 B/h on all
    for i in range(60):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); t1=48+i*2.4; boot=None
        dv.b='A'; dv.start(r.random(),'A')
        for q in range(48):
            t=q*6+r.random()+1
            if t>=t1 and dv.b=='A': dv.b='B'; dv.start(t1,'B')
            up=t-dv.boot
            dv.dump(t,[(0,(150*up,75))] if dv.b=='B' else [])
        leaks_of('B',0,dv,150); free_end[('B',dv.name)]=(dv.free,150)
        write(dv)
elif world=='drift':     # the uptime of a device is up to 3 % fast or slow; B leaks 120 B/h on a fifth
    std(n=60,days=10,step=6,share=.2,rate=120,blk=60,reb=0,f=lambda dv,up,t: 120*up*(1+.03*math.sin(int(dv.name[1:])%7)))
elif world=='bursts':    # B leaks 2,400 B once a day, at an hour of the device, on half
    std(n=60,days=14,step=6,share=.5,rate=100,blk=120,reb=0,f=lambda dv,up,t: 2400*int((up+int(dv.name[1:])%24)/24))
elif world=='sessions':  # no leak: sessions whose number wanders for days
    def f(dv,up,t):
        dv.x=getattr(dv,'x',20)*.97+.6+dv.r.gauss(0,1.2); return max(0,dv.x)*200
    std(n=80,days=12,step=6,share=1,f=f,blk=200); T.clear(); free_end.clear()
elif world=='refill':    # no leak: a cache fills to 8 kB in 20 hours after each boot, and boots last about 3 days
    std(n=80,days=12,step=3,share=1,f=lambda dv,up,t: 8000*min(1,up/20),blk=100,reb=.04); T.clear(); free_end.clear()
elif world=='mended':    # A leaks 200 B/h on 30 %, B does not
    std(n=80,days=8,step=6,leakb='A')
elif world=='two':       # B leaks 50 B/h on all devices, and 500 B/h in another path on a tenth
    for i in range(80):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b='AB'[i%2]; dv.b=b; ph=r.random()*6; dv.start(ph,b); fast=b=='B' and i%20==1
        for q in range(40):
            up=q*6
            dv.dump(ph+up+.01,([(0,(50*up,50))]+([(1,(500*up,100))] if fast else [])) if b=='B' else [])
        if b=='B': leaks_of(b,0,dv,50)
        if fast: leaks_of(b,1,dv,500)
        write(dv)
elif world=='watchdog':  # B leaks 3,000 B/h on all, of a heap of 96 kB: a device reboots when it is full
    for i in range(40):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b='AB'[i%2]; dv.b=b; dv.start(r.random(),b)
        for q in range(120):
            t=q+1.01+r.random()*.2
            if b=='B' and q and dv.free<4000: dv.start(t-.1,b)
            dv.dump(t,[(0,(3000*(t-dv.boot),100))] if b=='B' else [],heap=(('',98304),))
        if b=='B': leaks_of(b,0,dv,3000); free_end[(b,dv.name)]=(dv.free,3000)
        write(dv)
elif world=='hours':     # three dumps a day at any hour, all paths have a daily cycle of 40 %; B leaks 100 B/h on a quarter
    std(n=80,days=12,step=8,share=.25,rate=100,dumpkw=lambda dv,t: dict(load=1+.4*math.sin(2*math.pi*t/24)))
elif world=='gaps':      # each device is silent for 2 to 4 days; B leaks 80 B/h on all
    for i in range(60):
        r=random.Random(R.random()); dv=Dev('d%04d'%i,r); b='AB'[i%2]; dv.b=b; ph=r.random()*6; dv.start(ph,b); a=r.uniform(24,140); e=a+r.uniform(48,96)
        for q in range(40):
            if a<q*6<e: continue
            dv.dump(ph+q*6+.01,[(0,(80*q*6,80))] if b=='B' else [])
        if b=='B': leaks_of(b,0,dv,80); free_end[(b,dv.name)]=(dv.free,80)
        write(dv)
elif world=='plateau':   # no leak at the end: a path of B grows 100 B/h for four days, and stays
    std(n=60,days=10,step=6,share=1,f=lambda dv,up,t: 100*min(up,96),blk=100,reb=0); T.clear(); free_end.clear()
else: sys.exit('no world '+world)
truth['leak']=[{'build':b,'stack':['%#x'%a for a in leaks[i]],'devices':dv} for (b,i),dv in T.items()]
truth['paths']=NP
for x in truth['leak']:
    fe=[v[0]/v[1] for (b,n_),v in free_end.items() if b==x['build'] and v[0] is not None]
    x['hours']=sorted(fe)[len(fe)//2] if fe else None
json.dump(truth, open(d.rstrip('/')+'.json','w'))
