import Image from 'next/image';
import Plans from '../components/plans-later.jsx';

export default function Home() {
  return (
    <>
      <div className="hero">
        <h1>Ferry moves files</h1>
        <p>between machines that are not always on.</p>
        <div className="mark" />
      </div>
      {['What it does', 'How it does it', 'What it costs'].map((title, part) => (
        <section key={title}>
          <h2>{title}</h2>
          <div className="grid">
            {[1, 2, 3].map((place) => (
              <Image key={place} className="placeholder" src={`/make/png/cyan?w=280&h=200&after=${place * 200}&n=${part}${place}`} width={280} height={200} alt="" />
            ))}
          </div>
          <div className="mark" style={{ marginTop: 40 }} />
        </section>
      ))}
      <section>
        <Plans />
      </section>
    </>
  );
}
